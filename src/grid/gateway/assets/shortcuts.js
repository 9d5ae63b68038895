// Keyboard shortcuts: single keys without Ctrl, Alt or Meta, outside fields and dialogs; `?` lists them.
import { element, openDialog } from "./dom.js";

const KEYS = [
  ["?", "Show this list", () => showKeys(document.activeElement)],
  ["/", "Find a name", () => document.getElementById("filter")],
  ["j", "Next entry", () => besides(1)],
  ["k", "Previous entry", () => besides(-1)],
  ["ArrowDown", "Next entry, or next row of pictures", () => isInList() && besides(columns())],
  ["ArrowUp", "Previous entry, or previous row of pictures", () => isInList() && besides(-columns())],
  ["x", "Select or deselect the entry", () => document.activeElement.closest?.("#listing tr")?.querySelector(".pick input"), true],
  ["F2", "Rename the entry in place", () => null],
  ["u", "Go to the directory above", () => document.querySelector(".crumbs li:nth-last-child(2) a"), true],
  ["[", "Previous file", () => document.querySelector(".neighbors a[rel=prev]"), true],
  ["]", "Next file", () => document.querySelector(".neighbors a[rel=next]"), true],
  ["ArrowLeft", "Previous file in the preview, or previous picture", () => isInList() && isPictures() && besides(-1)],
  ["ArrowRight", "Next file in the preview, or next picture", () => isInList() && isPictures() && besides(1)],
  ["Escape", "Close what is open, or deselect all entries", () => null],
  ["n", "New directory", () => summary("mkdir-name")],
  ["a", "Add files", () => document.querySelector("#drop:not([hidden]) button") ?? summary("file")],
  ["z", "Undo a change", () => undo()],
  ["d", "Download as ZIP", () => document.querySelector("a[download][href*='t=zip']"), true],
  ["h", "Go to Home", () => document.querySelector(".brand"), true],
];

const SIGNS = { ArrowDown: "↓", ArrowUp: "↑", ArrowLeft: "←", ArrowRight: "→", Escape: "Esc" };

export function watchShortcuts(root) {
  const from = root.querySelector("[data-shortcuts]");
  if (!from) return;
  from.hidden = false;
  from.addEventListener("click", () => showKeys(from));
  root.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey || event.isComposing || event.defaultPrevented) return;
    if (event.target.closest("input, textarea, select, [contenteditable], dialog, video, audio")) return;
    const found = KEYS.find(([key]) => key === event.key);
    const target = found?.[2]();
    if (!target) return;
    event.preventDefault();
    if (found[3]) target.click();
    else target.focus();
  });
}

const isInList = () => document.activeElement.closest?.("#listing tbody th");
const isPictures = () => document.querySelector("#listing.pictures") !== null;

// How many entries are beside each other.
function columns() {
  const tops = [...document.querySelectorAll("#listing tbody tr:not([hidden])")].map((row) => row.offsetTop);
  return isPictures() ? tops.filter((top) => top === tops[0]).length : 1;
}

// The name of the entry after or before the focused one.
function besides(step) {
  const names = [...document.querySelectorAll("#listing tbody tr:not([hidden]) th a")];
  const row = document.activeElement.closest?.("tr");
  const here = names.findIndex((name) => row?.contains(name));
  return names[here < 0 ? (step > 0 ? 0 : names.length - 1) : here + step];
}

// Opens a collapsed form and returns its field.
function summary(id) {
  const field = document.getElementById(id);
  const details = field?.closest("details:not([hidden])");
  if (!details) return null;
  details.open = true;
  return field;
}

// Opens the list of changes and returns the button that undoes the last.
function undo() {
  const details = document.querySelector("#undo details");
  if (!details) return null;
  details.open = true;
  return details.querySelector("button");
}

function showKeys(from) {
  const dialog = openDialog(from);
  dialog.setAttribute("aria-label", "Keyboard shortcuts");
  const rows = KEYS.map(([key, words]) =>
    element("div", {}, element("dt", {}, element("kbd", {}, SIGNS[key] ?? key)), element("dd", {}, words)),
  );
  dialog.replaceChildren(
    element("h2", {}, "Keyboard shortcuts"),
    element("dl", { class: "keys" }, ...rows),
    element("button", { type: "button", "data-close": "" }, "Close"),
  );
  dialog.querySelector("button").focus();
}
