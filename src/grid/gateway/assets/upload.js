// The drop area for files and folders, and its upload queue.
import { element } from "./dom.js";
import { watchDrops } from "./drops.js";
import { pickedFiles } from "./folders.js";
import { Queue } from "./queue.js";
import { showListing } from "./listing.js";
import { QueueView } from "./queueview.js";

export function makeDropzone(zone, address) {
  const files = element("input", { type: "file", multiple: true, hidden: true, id: "pick-files", "aria-label": "Files" });
  const folder = element("input", { type: "file", hidden: true, id: "pick-folder", "aria-label": "Folder" });
  folder.webkitdirectory = true;
  const [pickFiles, pickFolder] = zone.querySelectorAll("button");
  pickFiles.addEventListener("click", () => files.click());
  pickFolder.addEventListener("click", () => folder.click());
  const panel = element("div", { class: "queue", hidden: true });
  zone.append(files, folder, panel);
  zone.hidden = false;

  const view = new QueueView(panel);
  const queue = new Queue(address, (state) => view.show(state));
  view.attach(queue);
  queue.onIdle = () => showListing();
  addEventListener("beforeunload", (event) => {
    if (!queue.isBusy) return;
    event.preventDefault();
    event.returnValue = true; // For browsers that know nothing newer.
  });

  for (const picker of [files, folder]) {
    picker.addEventListener("change", () => {
      queue.add(pickedFiles(picker.files));
      picker.value = "";
    });
  }
  watchDrops(zone, (found) => queue.add(found));
}
