// The order of search results: guides and recipes first, then the reference, pages about the project itself last.
var Scorer = {
  score: (result) => {
    const [page, , , , score] = result;
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
