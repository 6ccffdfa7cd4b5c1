// The order of search results: the entry of the reference that has the name, then guides and recipes, then other entries;
// pages about the project itself come last.
var Scorer = (() => {
  const query = (new URLSearchParams(window.location.search).get("q") || "").trim();

  // A rank above 0 if a full name such as `torch.nn.Linear` ends with the query. The order is: equal letters, as `Linear` and
  // not `linear`; the modules of this list, the others, and the modules that repeat names of `torch`.
  const MODULES = ["torch.", "torch.Tensor.", "torch.nn.", "torch.optim.", "torch.nn.functional.", "torch.autograd."];
  const REPEATED = /^torch\.(array_api|masked|monitor|sparse|backends|distributed|cuda)\./;
  const rank = (name) => {
    const [lower, wanted] = [name.toLowerCase(), query.toLowerCase()];
    if (!wanted || (lower !== wanted && !lower.endsWith(`.${wanted}`))) return 0;
    const module = MODULES.indexOf(name.slice(0, name.lastIndexOf(".") + 1));
    const place = module >= 0 ? module : MODULES.length + REPEATED.test(name);
    return 100 - place + (name === query || name.endsWith(`.${query}`) ? 20 : 0);
  };

  return {
    score: (result) => {
      const [page, title, , , score] = result;
      if (title.startsWith("torch.") && rank(title)) return rank(title);
      if (/^(how-to-|guide$|lessons\/|examples$)/.test(page)) return score + 5;
      if (/^(design|techniques|moved|coverage|compile-design|reliability|repository\/)/.test(page)) return score - 10;
      return score;
    },
    // Matches of names in the reference, of titles and of text.
    objNameMatch: 11,
    objPartialMatch: 6,
    objPrio: { 0: 15, 1: 5, 2: -5 },
    objPrioDefault: 0,
    title: 15,
    partialTitle: 7,
    term: 5,
    partialTerm: 2,
  };
})();
