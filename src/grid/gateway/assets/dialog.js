// Opens the pages of some links in a dialog.
import { element, fetchPage, openDialog } from "./dom.js";
import { watchForms } from "./forms.js";

export function watchDialogs(root) {
  for (const link of root.querySelectorAll("a[data-dialog]")) {
    link.addEventListener("click", (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      open(link);
    });
  }
}

async function open(link) {
  const dialog = openDialog(link);
  dialog.replaceChildren(element("p", { class: "busy" }, "Loading…"));
  try {
    const page = await fetchPage(link.href);
    dialog.replaceChildren(...document.adoptNode(page.querySelector("main")).childNodes);
    watchForms(dialog);
    dialog.querySelector("input:not([type=hidden])")?.focus();
  } catch (error) {
    dialog.replaceChildren(
      element("p", { class: "notice bad", role: "alert" }, error.message),
      element("button", { type: "button", "data-close": "" }, "Close"),
    );
  }
}
