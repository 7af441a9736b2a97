// Filters the tables of the rule index by category, default and fix; the choice is kept in the address.
(() => {
  const form = document.getElementById("rule-filters");
  if (!form) return;
  const rows = [...document.querySelectorAll(".rules tbody tr")];
  const tables = [...document.querySelectorAll(".rules table")];
  const count = document.getElementById("rule-count");

  const chosen = () => [...new FormData(form)].filter(([, value]) => value);

  const apply = () => {
    const wanted = chosen();
    for (const row of rows) row.hidden = wanted.some(([name, value]) => row.dataset[name] !== value);
    for (const table of tables) table.hidden = ![...table.tBodies[0].rows].some((row) => !row.hidden);
    const shown = rows.filter((row) => !row.hidden).length;
    count.value = `${shown} of ${rows.length} rules`;
  };

  for (const [name, value] of new URLSearchParams(location.search)) {
    if (form.elements[name]) form.elements[name].value = value;
  }
  form.addEventListener("change", () => {
    const query = new URLSearchParams(chosen()).toString();
    history.replaceState(null, "", (query ? `?${query}` : location.pathname) + location.hash);
    apply();
  });
  apply();
})();
