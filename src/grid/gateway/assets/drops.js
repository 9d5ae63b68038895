// Files and folders dropped anywhere on a page.
import { droppedFiles } from "./folders.js";

// add receives the dropped files with their folders' names. The zone is marked while something is held over the page.
export function watchDrops(zone, add) {
  let depth = 0;
  addEventListener("dragenter", (event) => {
    if (!event.dataTransfer?.types.includes("Files")) return;
    depth += 1;
    zone.classList.add("over");
  });
  addEventListener("dragleave", () => {
    depth = Math.max(0, depth - 1);
    if (depth === 0) zone.classList.remove("over");
  });
  addEventListener("dragover", (event) => {
    if (event.dataTransfer?.types.includes("Files")) event.preventDefault();
  });
  addEventListener("drop", async (event) => {
    if (!event.dataTransfer?.types.includes("Files")) return;
    event.preventDefault();
    depth = 0;
    zone.classList.remove("over");
    add(await droppedFiles(event.dataTransfer));
  });
}
