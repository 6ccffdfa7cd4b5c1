// Unpacks the document and the script of the page, and runs the script.
(async () => {
  const unpack = async id => {
    const text = atob(document.getElementById(id).textContent), packed = new Uint8Array(text.length);
    for (let index = 0; index < text.length; index++) packed[index] = text.charCodeAt(index);
    return new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"))).text();
  };
  const [text, code] = await Promise.all([unpack("document"), unpack("code")]), script = document.createElement("script");
  window.graphDocument = JSON.parse(text);
  script.textContent = code;
  document.body.append(script);
})();
