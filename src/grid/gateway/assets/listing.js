// The list of a directory, fetched again in its place.
import { fetchPage } from "./dom.js";
import { watchDialogs } from "./dialog.js";
import { showFilter } from "./filter.js";

// page: one that has the new list; fetched if there is none.
export async function showListing(page) {
  const old = document.getElementById("listing");
  if (!old) return;
  try {
    const wanted = location.search && !location.search.includes("t=") ? null : page;
    const found = (wanted ?? (await fetchPage(location.pathname + location.search))).getElementById("listing");
    if (!found) return;
    document.getElementById("listing").replaceWith(document.adoptNode(found));
    watchDialogs(found);
    showFilter();
  } catch {
    // The list stays as it was; a reload shows the new one.
  }
}

// Whether there is such an entry; it has the focus then.
export function focusEntry(name) {
  if (!name) return false;
  const wanted = name.normalize("NFC");
  const shown = Array.from(document.querySelectorAll("#listing tbody th bdi")).find((each) => each.textContent === wanted);
  const link = shown?.closest("a");
  link?.focus();
  return Boolean(link);
}
