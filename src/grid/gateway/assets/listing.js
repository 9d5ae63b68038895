// Reloads the list of a directory in place, and the changes that can be undone.
import { fetchPage } from "./dom.js";
import { showFilter } from "./filter.js";
import { watchPictures } from "./pictures.js";
import { watchSelection } from "./selection.js";

// page: contains the new list; fetched if not given.
export async function showListing(page) {
  const old = document.getElementById("listing");
  if (!old) return;
  try {
    const isDefault = !location.search || new URLSearchParams(location.search).has("t"); // The answer has the default order.
    const wanted = isDefault ? page : null;
    const current = wanted ?? (await fetchPage(location.pathname + location.search));
    const found = current.getElementById("listing");
    if (!found) return;
    document.getElementById("listing").replaceWith(document.adoptNode(found));
    watchSelection(found);
    watchPictures(found);
    showFilter();
    showUndo(current.getElementById("undo"));
  } catch {
    // Keep the old list; reloading the page shows the new one.
  }
}

function showUndo(found) {
  const old = document.getElementById("undo");
  if (!old || !found) return;
  const wasOpen = old.querySelector("details")?.open;
  old.replaceWith(document.adoptNode(found));
  if (wasOpen && found.firstElementChild) found.firstElementChild.open = true;
}

// Focuses the entry, and returns whether it exists.
export function focusEntry(name) {
  if (!name) return false;
  const wanted = name.normalize("NFC");
  const shown = Array.from(document.querySelectorAll("#listing tbody th bdi")).find((each) => each.textContent === wanted);
  const link = shown?.closest("a");
  link?.focus();
  return Boolean(link);
}
