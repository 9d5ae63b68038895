// The place where files and folders are dropped, and what is seen of them on their way.
import { announce, element, fetchPage, sizeText, timeText } from "./dom.js";
import { droppedFiles, pickedFiles } from "./folders.js";
import { Queue } from "./queue.js";
import { watchDialogs } from "./dialog.js";

const SHOWN = 200;

export function makeDropzone(zone, address) {
  const files = element("input", { type: "file", multiple: true, hidden: true, id: "pick-files", "aria-label": "Files" });
  const folder = element("input", { type: "file", hidden: true, id: "pick-folder", "aria-label": "Folder" });
  folder.webkitdirectory = true;
  const pickFiles = element("button", { type: "button", class: "primary" }, "Choose files");
  const pickFolder = element("button", { type: "button" }, "Choose a folder");
  pickFiles.addEventListener("click", () => files.click());
  pickFolder.addEventListener("click", () => folder.click());
  const panel = element("div", { class: "queue", hidden: true });
  zone.append(
    element("p", {}, "Drop files and folders here"),
    element("div", { class: "buttons" }, pickFiles, pickFolder),
    files,
    folder,
    panel,
  );
  zone.hidden = false;

  const view = new QueueView(panel);
  const queue = new Queue(address, (state) => view.show(state));
  view.attach(queue);
  queue.onIdle = () => refreshListing();
  addEventListener("beforeunload", (event) => {
    if (queue.isBusy) event.preventDefault();
  });

  for (const picker of [files, folder]) {
    picker.addEventListener("change", () => {
      queue.add(pickedFiles(picker.files));
      picker.value = "";
    });
  }
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
    queue.add(await droppedFiles(event.dataTransfer));
  });
}

async function refreshListing() {
  try {
    const page = await fetchPage(location.pathname);
    const found = document.adoptNode(page.getElementById("listing"));
    document.getElementById("listing").replaceWith(found);
    watchDialogs(found);
  } catch {
    // The list stays as it was; a reload shows the new one.
  }
}

class QueueView {
  constructor(panel) {
    this.bar = element("progress", { max: 1, value: 0, "aria-label": "All files" });
    this.words = element("span", {}, "");
    this.pace = element("span", {}, "");
    this.pause = element("button", { type: "button" }, "Pause");
    this.retry = element("button", { type: "button", hidden: true }, "Try the failed ones again");
    this.list = element("ol", { "aria-label": "Files on their way", tabindex: "0" });
    this.rows = new Map();
    this.panel = panel;
    const sum = element("p", { class: "sum" }, this.words, this.pace);
    panel.append(sum, this.bar, element("div", { class: "buttons" }, this.pause, this.retry), this.list);
  }

  attach(queue) {
    this.pause.addEventListener("click", () => (queue.isPaused ? queue.resume() : queue.pause()));
    this.retry.addEventListener("click", () => queue.retry());
  }

  show(state) {
    this.panel.hidden = false;
    this.bar.value = state.total === 0 ? (state.left === 0 ? 1 : 0) : state.sent / state.total;
    const failed = state.failed ? `, ${state.failed} failed` : "";
    this.words.textContent = `${state.done} of ${state.count} files${failed}, ${sizeText(state.sent)} of ${sizeText(state.total)}`;
    if (state.left === 0) this.pace.textContent = state.failed ? "Finished, not all of it" : "Finished";
    else if (state.isPaused) this.pace.textContent = state.active ? "Pausing after what is on its way…" : "Paused";
    else this.pace.textContent = `${sizeText(state.rate)}/s, ${timeText(state.remaining)} left`;
    this.pause.hidden = state.left === 0;
    this.pause.textContent = state.isPaused ? "Resume" : "Pause";
    this.retry.hidden = state.failed === 0 || state.active > 0;
    for (const item of state.items) this.showItem(item);
    if (state.left === 0) announce(`${state.done} files stored${failed}`);
  }

  showItem(item) {
    let row = this.rows.get(item);
    if (!row) {
      if (this.rows.size >= SHOWN) return;
      const bar = element("progress", { max: 1, value: 0, "aria-label": item.path.join("/") });
      const word = element("span", { class: "word" }, "");
      const line = element("li", {}, element("div", {}, element("span", {}, item.path.join("/")), word), bar);
      row = { bar, word, line };
      this.rows.set(item, row);
      this.list.append(line);
    }
    row.line.className = item.state;
    row.word.textContent = WORDS[item.state](item);
    row.bar.hidden = item.state === "done" || item.state === "failed";
    if (item.state === "storing") row.bar.removeAttribute("value");
    else row.bar.value = item.size === 0 ? 0 : item.sent / item.size;
  }
}

const WORDS = {
  waiting: (item) => sizeText(item.size),
  sending: (item) => (item.size ? `${sizeText(item.sent)} of ${sizeText(item.size)}` : "Making…"),
  storing: () => "Storing…",
  done: (item) => `Stored, ${sizeText(item.size)}`,
  failed: (item) => item.problem,
};
