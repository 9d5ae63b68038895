// Shows a list as pictures instead of rows, if somebody wants that; this browser remembers it.
import { announce } from "./dom.js";

const KEY = "grid-pictures";

export function watchPictures(list) {
  const button = list?.querySelector("[data-pictures]");
  if (!button) return;
  button.hidden = false;
  button.addEventListener("click", () => {
    const isWanted = button.getAttribute("aria-pressed") !== "true";
    remember(isWanted);
    show(list, button, isWanted);
    announce(isWanted ? "Shown as pictures" : "Shown as a list");
  });
  if (isRemembered()) show(list, button, true);
}

function show(list, button, isWanted) {
  button.setAttribute("aria-pressed", String(isWanted));
  list.classList.toggle("pictures", isWanted);
  list.dispatchEvent(new Event("pictures")); // Ends the loading of pictures, if any are being loaded.
  if (isWanted) import("./thumbnails.js").then(({ loadThumbnails }) => loadThumbnails(list)).catch(() => {}); // Icons stay.
}

function isRemembered() {
  try {
    return localStorage.getItem(KEY) !== null;
  } catch {
    return false;
  }
}

function remember(isWanted) {
  try {
    if (isWanted) localStorage.setItem(KEY, "shown");
    else localStorage.removeItem(KEY);
  } catch {
    // It holds for this page only.
  }
}
