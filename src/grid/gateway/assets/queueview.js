// Shows the upload queue: totals, an open question, and a line per file: running, waiting, then ended ones.
import { announce, element, momentText, sizeText, timeText } from "./dom.js";
import { Queue } from "./queue.js";

const SHOWN = 200;
const LISTS = { now: "Uploading", waiting: "Waiting", ended: "Finished" };
const PLACE = { waiting: "waiting", done: "ended", undone: "ended", skipped: "ended" };

// An upload queue for the directory at this address, shown in the panel.
export function startQueue(address, panel, onIdle) {
  const view = new QueueView(panel);
  const queue = new Queue(address, (state) => view.show(state));
  view.attach(queue);
  queue.onIdle = onIdle;
  return queue;
}

class QueueView {
  constructor(panel) {
    this.bar = element("progress", { max: 1, value: 0, "aria-label": "All files" });
    this.words = element("span", {}, "");
    this.pace = element("span", {}, "");
    this.pause = button("Pause");
    this.stop = button("Stop uploads in progress too");
    this.retry = button("Retry failed files");
    this.all = button("Upload skipped files anyway");
    this.clear = button("Clear the list");
    this.hint = element("p", { class: "hint" }, "");
    this.question = element("div", { class: "notice warn", role: "group", "aria-label": "Replace?", hidden: true });
    this.asked = null;
    this.lists = {};
    this.rows = new Map();
    this.panel = panel;
    const sum = element("span", { class: "sum" }, this.words, this.pace);
    // Folded, the panel shows how far everything is.
    this.fold = element("details", { open: true }, element("summary", {}, sum));
    const buttons = element("div", { class: "buttons" }, this.pause, this.stop, this.retry, this.all, this.clear);
    panel.append(this.bar, this.fold);
    this.fold.append(buttons, this.hint, this.question);
    for (const [name, label] of Object.entries(LISTS)) {
      const list = element("ol", { "aria-label": label, tabindex: "0" });
      this.lists[name] = { list, part: element("div", { hidden: true }, element("h2", {}, label), list) };
      this.fold.append(this.lists[name].part);
    }
  }

  attach(queue) {
    this.queue = queue;
    this.pause.addEventListener("click", () => (queue.isPaused ? queue.resume() : queue.pause()));
    this.stop.addEventListener("click", () => queue.stop());
    this.retry.addEventListener("click", () => queue.retry());
    this.all.addEventListener("click", () => queue.sendSkipped());
    this.clear.addEventListener("click", () => queue.clear());
  }

  show(state) {
    this.panel.hidden = state.items.length === 0;
    const ended = state.done + state.undone;
    this.bar.value = state.total === 0 ? (state.left === 0 ? 1 : 0) : (state.sent + state.stored) / (2 * state.total);
    const failed = state.failed ? `, ${state.failed} failed` : "";
    const skipped = state.skipped ? `, ${state.skipped} skipped` : "";
    const stored = state.left && state.stored < state.sent ? ` sent, ${sizeText(state.stored)} stored` : "";
    const sizes = `${sizeText(state.sent)} of ${sizeText(state.total)}${stored}`;
    const count = state.items.length - state.skipped;
    this.words.textContent = `${ended} of ${count} ${count === 1 ? "file" : "files"}${failed}${skipped}, ${sizes}`;
    this.pace.textContent = paceText(state);
    this.hint.textContent = hintText(state);
    this.hint.hidden = this.hint.textContent === "";
    this.hint.classList.toggle("trouble", state.trouble !== "");
    this.pause.hidden = state.left === 0 || state.left === state.asking;
    this.pause.textContent = state.isPaused ? "Resume" : "Pause";
    this.stop.hidden = !(state.isPaused && state.sending + state.storing > 0);
    this.retry.hidden = state.failed === 0 || state.active > 0;
    this.all.hidden = state.skipped === 0 || state.active > 0;
    this.clear.hidden = ended + state.skipped + state.failed === 0;
    this.showQuestion(state);
    this.showItems(state.items);
    if (state.left === 0 && state.items.length) announce(`${ended} ${ended === 1 ? "file" : "files"} stored${failed}${skipped}`);
    else if (state.trouble) announce(state.trouble);
  }

  // One question at a time, unchanged until it is answered.
  showQuestion(state) {
    if (this.asked?.state === "asking" && state.items.includes(this.asked)) return;
    this.asked = state.items.find((item) => item.state === "asking") ?? null;
    this.question.hidden = this.asked === null;
    if (!this.asked) return;
    this.fold.open = true; // What waits for an answer is seen.
    const item = this.asked;
    const all = element("input", { type: "checkbox", id: "for-all" });
    const choices = [["both", "Keep both"], ["skip", "Skip"]];
    if (item.there.kind === "filenode") choices.unshift(["replace", "Replace"]);
    const buttons = choices.map(([choice, label]) => {
      const made = button(label, false);
      made.addEventListener("click", () => this.queue.answer(item, choice, all.checked));
      return made;
    });
    const words = `“${item.path.join("/")}” already exists: ${thereText(item.there)}. Yours is ${sizeText(item.size)}. ${lossText(item.there)}`;
    const others = element("div", { class: "check" }, all, element("label", { for: "for-all" }, "Do the same for all files in this batch"));
    this.question.replaceChildren(element("p", {}, words), element("div", { class: "buttons" }, ...buttons), others);
    announce(words);
  }

  showItems(items) {
    const kept = new Set(items);
    for (const [item, row] of this.rows) {
      if (kept.has(item)) continue;
      row.line.remove();
      this.rows.delete(item);
    }
    for (const item of items) this.showItem(item);
    for (const { list, part } of Object.values(this.lists)) part.hidden = list.childElementCount === 0;
  }

  showItem(item) {
    const place = this.lists[PLACE[item.state] ?? "now"].list;
    let row = this.rows.get(item);
    if (!row) {
      if (place.childElementCount >= SHOWN && PLACE[item.state]) return;
      row = this.makeRow(item);
      this.rows.set(item, row);
    }
    if (row.line.parentElement !== place) {
      if (place === this.lists.ended.list) place.prepend(row.line);
      else place.append(row.line);
    }
    const seen = `${item.state} ${item.sent} ${item.stored} ${item.problem} ${item.replaced}`;
    if (row.seen === seen) return;
    row.seen = seen;
    row.line.className = item.state;
    row.word.textContent = WORDS[item.state](item);
    row.bar.hidden = item.state !== "sending" && item.state !== "storing";
    row.bar.value = item.size === 0 ? 0 : (item.sent + item.stored) / (2 * item.size);
    row.remove.hidden = PLACE[item.state] === "ended";
    row.undo.hidden = !(item.state === "done" && item.replaced);
  }

  makeRow(item) {
    const name = item.path.join("/");
    const bar = element("progress", { max: 1, value: 0, "aria-label": name });
    const word = element("span", { class: "word" }, "");
    const remove = element("button", { type: "button", class: "small", "aria-label": `Remove ${name} from the queue` }, "Remove");
    const undo = element("button", { type: "button", class: "small", "aria-label": `Undo: bring back the old ${name}`, hidden: true }, "Undo");
    remove.addEventListener("click", () => this.queue.remove(item));
    undo.addEventListener("click", () => this.queue.undo(item));
    const line = element("li", {}, element("div", {}, element("span", {}, name), word, undo, remove), bar);
    return { bar, word, line, remove, undo, seen: "" };
  }
}

function button(label, isHidden = true) {
  return element("button", { type: "button", hidden: isHidden }, label);
}

function thereText(there) {
  const when = typeof there.linked === "number" ? `, changed ${momentText(new Date(there.linked * 1000))}` : "";
  if (there.kind === "dirnode") return `a directory${when}`;
  return `a file of ${typeof there.size === "number" ? sizeText(there.size) : "unknown size"}${when}`;
}

function lossText(there) {
  if (there.kind === "dirnode") return "A directory cannot be replaced.";
  if (there.isMutable) return "It is editable: replacing overwrites its contents, which cannot be undone.";
  return "Once replaced, it can be brought back from this list.";
}

function paceText(state) {
  if (state.left === 0) return state.failed ? "Finished, with failures" : "Finished";
  if (state.left === state.asking) return "Waiting for your choice";
  if (state.isPaused) return state.active ? "Pausing after the uploads in progress…" : "Paused";
  const isStoring = state.sending + state.looking === 0 && state.storing > 0;
  return `${isStoring ? "Storing" : "Sending"} ${sizeText(isStoring ? state.rates.stored : state.rates.sent)}/s, ${timeText(state.remaining)} left`;
}

function hintText(state) {
  const wait = `${state.waiting} ${state.waiting === 1 ? "file waits" : "files wait"}`;
  if (state.trouble && state.left) return `Paused, because ${state.trouble}. Files already stored are safe; ${wait} until you resume.`;
  if (state.left && state.isPaused) {
    if (state.active) return `No new uploads will start; ${state.active} in progress will finish. If you stop them, small files start over when you resume, and large ones continue where they stopped.`;
    return `Files already stored are safe; ${wait} on this page until you resume.`;
  }
  if (state.left) return "Keep this page open. If it closes, drop the same files again: those already stored are skipped, and large ones continue where they stopped.";
  if (state.skipped) return `${state.skipped} already existed, and ${state.skipped === 1 ? "was" : "were"} not sent again.`;
  return "";
}

const WORDS = {
  waiting: (item) => sizeText(item.size),
  looking: () => "Checking…",
  asking: () => "Already exists: choose above",
  sending: (item) => (item.size ? `Sent ${sizeText(item.sent)} of ${sizeText(item.size)}` : "Creating…"),
  storing: (item) => (item.stored ? `Stored ${sizeText(item.stored)} of ${sizeText(item.size)}` : "Storing…"),
  done: (item) => `Stored${item.choice === "both" ? ` as ${item.target.at(-1)}` : item.replaced ? ", the old file was replaced" : ""}, ${sizeText(item.size)}${item.problem ? `. ${item.problem}` : ""}`,
  undone: () => "The old file is back",
  skipped: (item) => (item.choice === "skip" ? "Skipped" : "Already stored"),
  failed: (item) => `Failed: ${item.problem}`,
};
