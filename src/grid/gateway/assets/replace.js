// Forms whose answer updates one part of this page: check, verify, repair.
import { announce, element, fetchPage } from "./dom.js";

export function watchReplacements(root) {
  for (const form of root.querySelectorAll("form[data-replace]")) {
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      run(form, document.getElementById(form.dataset.replace));
    });
  }
}

async function run(form, part) {
  const label = form.querySelector("button").textContent;
  const buttons = [...part.querySelectorAll("button")];
  const wait = element("p", { class: "busy", role: "status" }, form.dataset.busy ?? "Working…");
  for (const button of buttons) button.disabled = true;
  part.setAttribute("aria-busy", "true");
  part.querySelector(".notice.bad[data-problem]")?.remove();
  part.append(wait);
  try {
    const page = await fetchPage(form.getAttribute("action"), { method: "POST", body: new FormData(form) });
    const found = document.adoptNode(page.getElementById(part.id));
    part.replaceWith(found);
    watchReplacements(found);
    announce(found.querySelector(".notice")?.textContent ?? "Done");
    [...found.querySelectorAll("button")].find((button) => button.textContent === label)?.focus();
  } catch (error) {
    wait.remove();
    part.removeAttribute("aria-busy");
    for (const button of buttons) button.disabled = false;
    part.append(element("p", { class: "notice bad", role: "alert", "data-problem": "" }, error.message));
  }
}
