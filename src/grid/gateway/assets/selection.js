// Selects entries of a directory: checkboxes, Shift for a range, Ctrl or Cmd and a click anywhere in a row; F2 renames in place.
import { announce, element } from "./dom.js";

const PICKED = "tbody .pick input:checked";

let last = null; // The row where a range begins.

export function watchSelection(list) {
  const bar = list?.querySelector("form.selection");
  if (!bar) return;
  last = null;
  const all = list.querySelector("[data-pick-all]");
  all.closest("label").hidden = false;
  all.addEventListener("change", () => pick(rows(list), all.checked));
  const clear = bar.querySelector("[data-clear]");
  clear.hidden = false;
  clear.addEventListener("click", () => {
    pick(rows(list), false);
    (last?.querySelector("th a") ?? all).focus();
  });
  const table = list.querySelector("table"); // Its rows are in several groups.
  table.addEventListener("mousedown", (event) => {
    if (event.shiftKey && !event.target.closest("a, input, label")) event.preventDefault(); // Selects no text.
  });
  table.addEventListener("click", (event) => choose(list, event));
  list.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && list.querySelector(PICKED)) clear.click();
  });
  table.addEventListener("keydown", (event) => {
    if (event.key !== "F2" || !event.target.closest("tbody th") || event.target.closest("form")) return;
    event.preventDefault();
    renameInPlace(list, event.target.closest("tr"));
  });
  showSelection();
  bar.removeAttribute("data-early");
}

// Call this when rows were hidden: what cannot be seen is not selected.
export function showSelection() {
  const list = document.getElementById("listing");
  const bar = list?.querySelector("form.selection");
  if (!bar) return;
  // The browser finds the few that matter, quicker than a script that looks at every row.
  for (const hidden of list.querySelectorAll("tbody tr[hidden] .pick input:checked")) hidden.checked = false;
  for (const row of list.querySelectorAll("tr.picked")) if (!box(row).checked) row.classList.remove("picked");
  const picked = list.querySelectorAll(PICKED);
  for (const each of picked) each.closest("tr").classList.add("picked");
  const count = picked.length;
  const words = `${count} selected`;
  const label = bar.querySelector("[data-count]");
  if (!bar.hidden && label.textContent !== words) announce(words);
  label.textContent = words;
  bar.hidden = count === 0;
  const all = list.querySelector("[data-pick-all]");
  const total = list.querySelectorAll("tbody tr:not([hidden]) .pick input").length;
  all.checked = count > 0 && count === total;
  all.indeterminate = count > 0 && count < total;
}

function choose(list, event) {
  const row = event.target.closest("tbody tr");
  const own = row && box(row);
  if (!own) return;
  const isBox = event.target === own;
  if (!isBox) {
    if (event.target.closest("a, button, input, label, form") || !(event.ctrlKey || event.metaKey || event.shiftKey)) return;
    own.checked = event.shiftKey || !own.checked;
  }
  const shown = rows(list);
  const from = shown.indexOf(last);
  if (event.shiftKey && from >= 0) {
    const to = shown.indexOf(row);
    pick(shown.slice(Math.min(from, to), Math.max(from, to) + 1), own.checked);
  }
  last = row;
  showSelection();
}

function pick(some, isPicked) {
  for (const row of some) if (box(row)) box(row).checked = isPicked;
  showSelection();
}

const rows = (list) => [...list.querySelectorAll("tbody tr:not([hidden])")];
const box = (row) => row.querySelector(".pick input");

// Puts a field over the name; Enter renames, Escape leaves everything as it was.
export function renameInPlace(list, row) {
  const link = row.querySelector("th a");
  const name = box(row)?.value;
  if (name === undefined || !row.querySelector("a[data-dialog]") || row.querySelector("th form")) return;
  const field = element("input", { type: "text", name: "to_name", value: name, "aria-label": `New name of ${name}`, autocomplete: "off" });
  const hidden = { t: "rename", from_name: name, ask: "true", when_done: list.dataset.path };
  const form = element(
    "form",
    { action: list.dataset.path, method: "post", enctype: "multipart/form-data", "data-ask": "Renamed", class: "renaming" },
    ...Object.entries(hidden).map(([key, value]) => element("input", { type: "hidden", name: key, value })),
    field,
  );
  form.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    event.stopPropagation();
    close();
    link.focus();
  });
  form.addEventListener("focusout", (event) => {
    if (!form.contains(event.relatedTarget) && !form.hasAttribute("aria-busy") && document.hasFocus()) close();
  });
  let isOpen = true;
  function close() {
    if (!isOpen) return;
    isOpen = false; // Removing the field fires focusout.
    form.remove();
    link.hidden = false;
  }
  link.hidden = true;
  link.after(form);
  field.focus();
  const dot = name.lastIndexOf(".");
  field.setSelectionRange(0, dot > 0 ? dot : name.length);
}
