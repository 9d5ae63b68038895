// Links whose page is shown over this one. Their forms go off as forms do.
import { element, fetchPage } from "./dom.js";

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
  const dialog = element("dialog", { "aria-label": link.getAttribute("aria-label") }, element("p", { class: "busy" }, "Loading…"));
  document.body.append(dialog);
  dialog.addEventListener("close", () => {
    dialog.remove();
    link.focus();
  });
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog || event.target.closest("[data-close]")) {
      event.preventDefault();
      dialog.close();
    }
  });
  dialog.showModal();
  try {
    const page = await fetchPage(link.href);
    dialog.replaceChildren(...page.querySelector("main").childNodes);
    dialog.querySelector("input:not([type=hidden])")?.focus();
  } catch (error) {
    dialog.replaceChildren(
      element("p", { class: "notice bad", role: "alert" }, error.message),
      element("button", { type: "button", "data-close": "" }, "Close"),
    );
  }
}
