// Finds names in a long list: hides rows that lack the typed words.
import { announce, element } from "./dom.js";
import { showSelection } from "./selection.js";

const FEW = 12;
const ROW_REM = 5.12;
const QUIET_MS = 80;

export function watchFilter(root) {
  const place = root.querySelector("[data-filter]");
  if (!place) return;
  place.removeAttribute("data-early");
  const entry = place.querySelector("input");
  let timer = null;
  entry.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(() => apply(entry), QUIET_MS);
  });
  showFilter();
}

// Call this when the list was replaced.
export function showFilter() {
  const place = document.querySelector("[data-filter]");
  if (!place) return;
  const entry = place.querySelector("input");
  place.hidden = entry.value === "" && rows().length < FEW;
  if (entry.value) apply(entry);
}

function rows() {
  return document.querySelectorAll("#listing tbody tr");
}

function apply(entry) {
  const words = entry.value.toLocaleLowerCase().split(/\s+/).filter(Boolean);
  let shown = 0;
  for (const row of rows()) {
    const name = row.querySelector("bdi").textContent.toLocaleLowerCase();
    row.hidden = !words.every((word) => name.includes(word));
    if (!row.hidden) shown += 1;
  }
  for (const group of document.querySelectorAll("#listing tbody")) fit(group, words.length > 0);
  showSelection();
  const found = entry.parentElement.querySelector("[data-found]");
  found.textContent = words.length ? `${shown} of ${rows().length}` : "";
  document.querySelector("#listing table").hidden = words.length > 0 && shown === 0;
  showNothing(words.length > 0 && shown === 0, entry.value);
  if (words.length) announce(`${shown} ${shown === 1 ? "name" : "names"} found`);
}

// A group out of sight has the height of the rows that are left in it, and none without them.
function fit(group, isFiltered) {
  const left = group.querySelectorAll("tr:not([hidden])").length;
  group.hidden = left === 0;
  group.style.containIntrinsicBlockSize = isFiltered ? `${left * ROW_REM}rem` : "";
}

function showNothing(isNothing, text) {
  let place = document.getElementById("no-match");
  if (!isNothing) {
    place?.remove();
    return;
  }
  if (!place) {
    place = element("p", { id: "no-match", class: "hint" }, "");
    document.getElementById("listing").append(place);
  }
  place.textContent = `No names contain “${text.trim()}”.`;
}
