// The index of the search grows with the site, and the theme fetches it with each page
// that has a form called "search". Here a page has one only if a search led to it (?h=)
// or has begun (?q=). At the first pause the page loads again, with what was typed; a key
// pressed meanwhile is lost, so a pause is longer than slow typing's between two letters.
if (!/[?&][qh]=/.test(location.search)) {
  const index = new URL("../../search/search_index.json", document.currentScript.src);
  const form = document.forms.search;
  form.removeAttribute("name");
  document.getElementById("__search").addEventListener("change", () => fetch(index), { once: true });
  let pause;
  form.query.addEventListener("input", ({ target }) => {
    clearTimeout(pause);
    pause = setTimeout(() => {
      history.replaceState(null, "", `?q=${encodeURIComponent(target.value)}${location.hash}`);
      location.reload();
    }, 600);
  });
}
