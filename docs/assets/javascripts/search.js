// The index of the search grows with the site, and the theme fetches it with each page
// that has a form called "search". Here a page has one only if a search led to it (?h=)
// or has begun (?q=): opening the search loads the page again, with the index.
if (!/[?&][qh]=/.test(location.search)) {
  document.forms.search.removeAttribute("name");
  document.getElementById("__search").addEventListener("change", () => {
    history.replaceState(null, "", `?q=${location.hash}`);
    location.reload();
  });
}
