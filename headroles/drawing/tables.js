"use strict";
for (const table of document.querySelectorAll("table")) {
  const body = table.tBodies[0];
  if (body.rows.length < 5) continue;
  const heads = [...table.tHead.rows[0].cells];
  const value = (row, k) => row.cells[k].textContent.trim();
  heads.forEach((head, k) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    button.title = "sort";
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const order = head.getAttribute("aria-sort") === "descending" ? "ascending" : "descending";
      heads.forEach((one) => one.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", order);
      const sign = order === "descending" ? -1 : 1;
      const rows = [...body.rows].sort((one, other) => {
        const [a, b] = [value(one, k), value(other, k)];
        const [x, y] = [parseFloat(a), parseFloat(b)];
        if (isNaN(x) !== isNaN(y)) return isNaN(x) ? 1 : -1;
        return sign * (isNaN(x) ? a.localeCompare(b) : x - y);
      });
      body.append(...rows);
    });
  });
  if (body.rows.length < 10) continue;
  const label = document.createElement("label");
  const field = document.createElement("input");
  const found = document.createElement("output");
  field.type = "search";
  label.append("Rows with ", field, " ", found);
  table.parentElement.before(label);
  field.addEventListener("input", () => {
    const wanted = field.value.toLowerCase();
    for (const row of body.rows) row.hidden = !row.textContent.toLowerCase().includes(wanted);
    const shown = [...body.rows].filter((row) => !row.hidden).length;
    found.textContent = wanted ? `${shown} of ${body.rows.length} rows` : "";
  });
}
