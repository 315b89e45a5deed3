// Sortable tables. Without this script the tables stand in their published order.
"use strict";

(function () {
  function keyOf(row, index) {
    const cell = row.cells[index];
    const given = cell.getAttribute("data-sort");
    if (given === null) return cell.textContent.trim().toLowerCase();
    return given === "" ? null : Number(given);
  }

  function compare(a, b) {
    if (typeof a === "number" && typeof b === "number") return a - b;
    return String(a).localeCompare(String(b), "en", { numeric: true });
  }

  function sort(table, index, header, button) {
    const ascending = header.getAttribute("aria-sort") === "descending" ||
      (header.getAttribute("aria-sort") === null && !header.classList.contains("number"));
    const body = table.tBodies[0];
    const rows = Array.from(body.rows, (row, place) => ({ row, place, key: keyOf(row, index) }));
    rows.sort((a, b) => {
      if (a.key === null || b.key === null) return (a.key === null) - (b.key === null) || a.place - b.place;
      return (ascending ? compare(a.key, b.key) : compare(b.key, a.key)) || a.place - b.place;
    });
    rows.forEach(({ row }) => body.append(row));
    for (const other of table.querySelectorAll("th[aria-sort]")) other.removeAttribute("aria-sort");
    header.setAttribute("aria-sort", ascending ? "ascending" : "descending");
    button.focus();
  }

  for (const table of document.querySelectorAll("table.sortable")) {
    const titles = table.tHead.rows[table.tHead.rows.length - 1];
    Array.from(titles.cells).forEach((header, index) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...header.childNodes);
      header.append(button);
      button.addEventListener("click", () => sort(table, index, header, button));
    });
  }
})();
