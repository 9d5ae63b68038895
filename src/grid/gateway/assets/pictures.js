// Shows a list as pictures instead of rows, if somebody wants that; this browser remembers it. Visitors see a list of photographs as
// pictures at once, unless they want rows, or their connection is slow or should transfer little.
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
  if (remembered() ?? (button.dataset.pictures === "first" && !isFrugal())) show(list, button, true);
}

function show(list, button, isWanted) {
  button.setAttribute("aria-pressed", String(isWanted));
  list.classList.toggle("pictures", isWanted);
  list.dispatchEvent(new Event("pictures")); // Ends the loading of pictures, if any are being loaded.
  if (isWanted) import("./thumbnails.js").then(({ loadThumbnails }) => loadThumbnails(list)).catch(() => {}); // Icons stay.
}

function isFrugal() {
  const { saveData, effectiveType } = navigator.connection ?? {};
  return saveData || /2g|3g/.test(effectiveType ?? "");
}

// Whether pictures are wanted; undefined if nobody has said so.
function remembered() {
  try {
    return { shown: true, hidden: false }[localStorage.getItem(KEY)];
  } catch {
    return undefined;
  }
}

function remember(isWanted) {
  try {
    localStorage.setItem(KEY, isWanted ? "shown" : "hidden");
  } catch {
    // It holds for this page only.
  }
}
