// The drop area for files and folders, and its upload queue.
import { announce, element } from "./dom.js";
import { watchDrops } from "./drops.js";
import { pickedFiles } from "./folders.js";
import { showListing } from "./listing.js";

export function makeDropzone(zone, address) {
  const files = element("input", { type: "file", multiple: true, hidden: true, id: "pick-files", "aria-label": "Files" });
  const folder = element("input", { type: "file", hidden: true, id: "pick-folder", "aria-label": "Folder" });
  folder.webkitdirectory = true;
  const [pickFiles, pickFolder] = zone.querySelectorAll("button");
  const queue = new LateQueue(address, () => showListing());
  pickFiles.addEventListener("click", () => files.click());
  pickFolder.addEventListener("click", () => folder.click());
  zone.append(files, folder, queue.panel);
  zone.hidden = false;

  for (const event of ["pointerenter", "focusin"]) zone.addEventListener(event, loadQueue, { once: true });
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

// An upload queue whose script is loaded when somebody is about to upload: those who only look do not wait for it.
export class LateQueue {
  constructor(address, onIdle) {
    this.panel = element("div", { class: "queue", hidden: true });
    this.address = address;
    this.onIdle = onIdle;
    this.queue = null;
    this.coming = 0;
  }

  get isBusy() {
    return this.coming > 0 || Boolean(this.queue?.isBusy);
  }

  async add(found) {
    this.coming += 1;
    try {
      const { startQueue } = await loadQueue();
      if (!this.queue) {
        this.panel.replaceChildren();
        this.queue = startQueue(this.address, this.panel, this.onIdle);
      }
      this.queue.add(found);
    } catch {
      this.panel.textContent = "The gateway did not answer, so nothing was uploaded. Reload this page and try again.";
      this.panel.hidden = false;
      announce(this.panel.textContent);
    } finally {
      this.coming -= 1;
    }
  }
}

const loadQueue = () => import("./queueview.js");
