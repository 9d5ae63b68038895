// Adds buttons that copy a capability.
import { announce } from "./dom.js";

export function watchCopies(root) {
  for (const button of root.querySelectorAll("[data-copy]")) {
    button.hidden = false;
    button.addEventListener("click", async () => {
      const entry = button.parentElement.querySelector("input");
      try {
        await navigator.clipboard.writeText(button.dataset.copy);
      } catch {
        entry?.select();
        document.execCommand("copy");
      }
      const label = button.textContent;
      button.textContent = "Copied";
      announce("Copied");
      setTimeout(() => (button.textContent = label), 1600);
    });
  }
}
