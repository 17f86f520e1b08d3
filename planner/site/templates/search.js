"use strict";
const words = JSON.parse(document.getElementById("words").textContent);
const input = document.getElementById("q");
const hits = document.getElementById("hits");
const rows = Array.from(document.querySelectorAll(".models > li"));
const sections = Array.from(document.querySelectorAll(".schema"));
const texts = rows.map((row) => row.textContent.toLowerCase());
const columns = words.columns.map((column) => column.join(" "));
let wait = 0;

function find() {
  const terms = input.value.toLowerCase().split(/\s+/).filter(Boolean);
  const matches = terms.map((term) => new Set(columns.flatMap((text, n) => (text.includes(term) ? [n] : []))));
  let count = 0;
  rows.forEach((row, n) => {
    const named = new Set();
    const shown = terms.every((term, t) => {
      const own = words.models[n].filter((column) => matches[t].has(column));
      own.forEach((column) => named.add(words.columns[column][0]));
      return texts[n].includes(term) || own.length > 0;
    });
    row.hidden = !shown;
    count += shown ? 1 : 0;
    row.querySelector(".hit")?.remove();
    if (shown && named.size > 0) {
      const hit = document.createElement("p");
      hit.className = "hit";
      hit.textContent = Array.from(named).slice(0, 8).join(", ") + (named.size > 8 ? " …" : "");
      row.append(hit);
    }
  });
  sections.forEach((section) => { section.hidden = !section.querySelector("li:not([hidden])"); });
  document.getElementById("nothing").hidden = count > 0;
  hits.textContent = terms.length > 0 ? `${count.toLocaleString("en")} of ${rows.length.toLocaleString("en")}` : "";
}

function read() {
  const asked = location.hash.match(/^#q=(.*)$/);
  if (asked) {
    input.value = decodeURIComponent(asked[1]);
    find();
  }
}

input.addEventListener("input", () => { clearTimeout(wait); wait = setTimeout(find, 80); });
addEventListener("hashchange", read);
addEventListener("keydown", (event) => {
  if (event.key === "/" && document.activeElement !== input && input.offsetParent) { event.preventDefault(); input.focus(); }
});
document.getElementById("search").hidden = false;
read();
