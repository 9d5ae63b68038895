// Opens the pages of some links in a dialog.
import { element, fetchPage, openDialog } from "./dom.js";
import { watchCopies } from "./copy.js";
import { watchEnding } from "./ending.js";

// One listener for all links, as a list has hundreds.
export function watchDialogs(root) {
  root.addEventListener("click", (event) => {
    const link = event.target.closest?.("a[data-dialog]");
    if (!link || event.defaultPrevented || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    open(link);
  });
}

async function open(link) {
  const dialog = openDialog(link);
  dialog.replaceChildren(element("p", { class: "busy" }, "Loading…"));
  try {
    const page = await fetchPage(link.href);
    dialog.replaceChildren(...document.adoptNode(page.querySelector("main")).childNodes);
    watchCopies(dialog);
    watchEnding(dialog);
    const heading = dialog.querySelector("h1");
    if (heading && !dialog.getAttribute("aria-label")) dialog.setAttribute("aria-label", heading.textContent);
    const field = dialog.querySelector("input:not([type=hidden], [readonly], [hidden] *)");
    if (heading && !field) heading.tabIndex = -1;
    (field ?? heading)?.focus();
  } catch (error) {
    dialog.replaceChildren(
      element("p", { class: "notice bad", role: "alert" }, error.message),
      element("button", { type: "button", "data-close": "" }, "Close"),
    );
  }
}
