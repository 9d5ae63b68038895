// What is seen of files on their way: a sum, what can be done about them, and a line for each.
import { announce, element, sizeText, timeText } from "./dom.js";

const SHOWN = 200;

export class QueueView {
  constructor(panel) {
    this.bar = element("progress", { max: 1, value: 0, "aria-label": "All files" });
    this.words = element("span", {}, "");
    this.pace = element("span", {}, "");
    this.pause = element("button", { type: "button" }, "Pause");
    this.stop = element("button", { type: "button", hidden: true }, "Stop those on their way too");
    this.retry = element("button", { type: "button", hidden: true }, "Try the failed ones again");
    this.all = element("button", { type: "button", hidden: true }, "Upload all again");
    this.hint = element("p", { class: "hint" }, "");
    this.list = element("ol", { "aria-label": "Files on their way", tabindex: "0" });
    this.rows = new Map();
    this.panel = panel;
    const sum = element("p", { class: "sum" }, this.words, this.pace);
    panel.append(sum, this.bar, element("div", { class: "buttons" }, this.pause, this.stop, this.retry, this.all), this.hint, this.list);
  }

  attach(queue) {
    this.pause.addEventListener("click", () => (queue.isPaused ? queue.resume() : queue.pause()));
    this.stop.addEventListener("click", () => queue.stop());
    this.retry.addEventListener("click", () => queue.retry());
    this.all.addEventListener("click", () => queue.sendSkipped());
  }

  show(state) {
    this.panel.hidden = false;
    this.bar.value = state.total === 0 ? (state.left === 0 ? 1 : 0) : state.sent / state.total;
    const failed = state.failed ? `, ${state.failed} failed` : "";
    const skipped = state.skipped ? `, ${state.skipped} skipped` : "";
    const count = state.items.length - state.skipped;
    this.words.textContent = `${state.done} of ${count} files${failed}${skipped}, ${sizeText(state.sent)} of ${sizeText(state.total)}`;
    this.pace.textContent = paceText(state);
    this.hint.textContent = hintText(state);
    this.hint.hidden = this.hint.textContent === "";
    this.hint.classList.toggle("trouble", state.trouble !== "");
    this.pause.hidden = state.left === 0;
    this.pause.textContent = state.isPaused ? "Resume" : "Pause";
    this.stop.hidden = !(state.isPaused && state.sending + state.storing > 0);
    this.retry.hidden = state.failed === 0 || state.active > 0;
    this.all.hidden = state.skipped === 0 || state.active > 0;
    for (const item of state.items) this.showItem(item);
    if (state.left === 0) announce(`${state.done} files stored${failed}${skipped}`);
    else if (state.trouble) announce(state.trouble);
  }

  showItem(item) {
    let row = this.rows.get(item);
    if (!row) {
      if (this.rows.size >= SHOWN && item.state !== "failed") return;
      row = this.makeRow(item);
      this.rows.set(item, row);
      this.list.append(row.line);
    }
    const seen = `${item.state} ${item.sent} ${item.problem}`;
    if (row.seen === seen) return;
    row.seen = seen;
    row.line.className = item.state;
    row.word.textContent = WORDS[item.state](item);
    row.bar.hidden = item.state !== "sending" && item.state !== "storing";
    if (item.state === "storing") row.bar.removeAttribute("value");
    else row.bar.value = item.size === 0 ? 0 : item.sent / item.size;
  }

  makeRow(item) {
    const bar = element("progress", { max: 1, value: 0, "aria-label": item.path.join("/") });
    const word = element("span", { class: "word" }, "");
    const line = element("li", {}, element("div", {}, element("span", {}, item.path.join("/")), word), bar);
    return { bar, word, line, seen: "" };
  }
}

function paceText(state) {
  if (state.left === 0) return state.failed ? "Finished, not all of it" : "Finished";
  if (state.isPaused) return state.active ? "Pausing after what is on its way…" : "Paused";
  return `${sizeText(state.rate)}/s, ${timeText(state.remaining)} left`;
}

function hintText(state) {
  const wait = `${state.waiting} ${state.waiting === 1 ? "file waits" : "files wait"}`;
  if (state.trouble && state.left) return `Paused, because ${state.trouble}. What is stored stays stored; ${wait} until you resume.`;
  if (state.left && state.isPaused) {
    if (state.active) return `No further file is started; ${state.active} on the way will arrive. Stopped ones would begin again from their start.`;
    return `What is stored stays stored; ${wait} on this page until you resume.`;
  }
  if (state.left) return "Keep this page open. Should it close, drop the same files again: those that are there already are skipped.";
  if (state.skipped) return `${state.skipped} ${state.skipped === 1 ? "was" : "were"} there already, with the same name and size and not changed since, and not sent again.`;
  return "";
}

const WORDS = {
  waiting: (item) => sizeText(item.size),
  looking: () => "Looking…",
  sending: (item) => (item.size ? `${sizeText(item.sent)} of ${sizeText(item.size)}` : "Making…"),
  storing: () => "Storing…",
  done: (item) => `Stored, ${sizeText(item.size)}`,
  skipped: () => "Already there",
  failed: (item) => item.problem,
};
