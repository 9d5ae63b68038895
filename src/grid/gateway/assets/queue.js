// Uploads files to a directory, a few at a time, and counts the bytes actually sent and stored.
//
// Unchanged existing files are skipped, so after any failure the same folder can be dropped again; a file whose name is taken by
// another waits for a choice. Pausing starts no new uploads but lets running ones finish; stopping makes small ones start over
// later, and large ones continue. Without a connection everything waits. Stored files stay stored.
import { Present } from "./present.js";
import { Lost, Stopped, Taken, forget, require, store } from "./send.js";
import { Storing } from "./storing.js";

const AT_ONCE = 3;
const SHOW_MS = 120;
const PACE_S = 3;
const TRIES = 2;
const ENDED = ["done", "skipped", "undone", "failed"];
const FRESH = { state: "waiting", sent: 0, stored: 0, problem: "", losses: 0 };

export class Queue {
  constructor(address, show) {
    this.address = address;
    this.show = show;
    this.items = [];
    this.batch = 0;
    this.choices = new Map();
    this.active = 0;
    this.isPaused = false;
    this.trouble = "";
    this.rates = { sent: 0, stored: 0 };
    this.seen = { at: performance.now(), sent: 0, stored: 0 };
    this.folders = new Map();
    this.present = new Present((path) => this.at(path));
    this.storing = new Storing();
    this.timer = null;
    this.onIdle = () => {};
  }

  get isBusy() {
    return this.items.some((item) => !ENDED.includes(item.state));
  }

  add(files) {
    if (!this.isBusy) this.present.forget();
    this.batch += 1;
    for (const { file, path } of files) {
      this.items.push({ file, path, target: path, size: file?.size ?? 0, batch: this.batch, choice: "", there: null, replaced: "", ...FRESH });
    }
    this.pump();
  }

  pause() {
    this.isPaused = true;
    this.tell();
  }

  resume() {
    this.isPaused = false;
    this.trouble = "";
    this.pump();
  }

  // Running uploads are aborted; after resuming, small ones start over, and large ones continue.
  stop() {
    this.isPaused = true;
    for (const item of this.items) if (item.state === "sending" || item.state === "storing") item.request?.abort();
    this.tell();
  }

  retry() {
    this.again("failed", {});
  }

  sendSkipped() {
    this.again("skipped", { choice: "replace" });
  }

  again(state, more) {
    for (const item of this.items) if (item.state === state) Object.assign(item, FRESH, more);
    this.forget();
    this.resume();
  }

  // Removes one file from the queue in any state. The gateway links nothing whose sender has gone; a link made before that
  // is found, and its row returns and says so.
  async remove(item) {
    const mayBeStored = item.state === "sending" || item.state === "storing";
    item.isRemoved = true;
    this.items = this.items.filter((other) => other !== item);
    item.request?.abort();
    if (item.file) forget(item);
    this.pump();
    this.tell();
    if (mayBeStored && item.file && (await this.isStored(item))) {
      Object.assign(item, { state: "done", sent: item.size, stored: item.size, problem: "It was stored before you removed it" });
      this.items.push(item);
      this.tell();
    }
  }

  async isStored(item) {
    this.present.forget();
    const before = item.target === item.path ? item.there : null;
    const now = await this.present.find({ file: item.file, path: item.target }).catch(() => null);
    return now !== null && (now.cap !== before?.cap || (now.isMutable && now.isSame && !before.isSame));
  }

  // Removes ended uploads from the list.
  clear() {
    this.items = this.items.filter((item) => !ENDED.includes(item.state));
    this.tell();
  }

  // Applies a choice (replace, both or skip) to a waiting file, and optionally to the rest of its batch.
  answer(item, choice, isForAll) {
    if (isForAll) this.choices.set(item.batch, choice);
    for (const other of this.items) {
      if (other.state !== "asking" || !(other === item || (isForAll && other.batch === item.batch))) continue;
      if (choice === "replace" && other.there.kind !== "filenode") continue;
      other.choice = choice;
      other.state = choice === "skip" ? "skipped" : "waiting";
    }
    this.pump();
    this.tell();
  }

  // Links the replaced file again.
  async undo(item) {
    try {
      await require(fetch(`${this.at(item.target)}?t=uri&replace=true`, { method: "PUT", body: item.replaced }));
      item.state = "undone";
    } catch (error) {
      item.problem = `Could not undo this: ${error.message}`;
    }
    this.tell();
    this.onIdle();
  }

  forget() {
    this.folders.clear();
    this.present.forget();
  }

  pump() {
    while (!this.isPaused && this.active < AT_ONCE) {
      const item = this.items.find((each) => each.state === "waiting");
      if (!item) break;
      this.active += 1;
      item.state = "looking";
      this.send(item)
        .then((state) => Object.assign(item, { state }, state === "done" ? { sent: item.size, stored: item.size } : {}))
        .catch((error) => this.fail(item, error))
        .finally(() => {
          item.request = null;
          this.active -= 1;
          this.pump();
          if (this.active === 0) this.onIdle();
        });
    }
    this.tellSoon();
  }

  fail(item, error) {
    Object.assign(item, { sent: 0, stored: 0 });
    if (error instanceof Lost) {
      this.isPaused = true;
      this.trouble = error.message;
    }
    if (error instanceof Lost || error instanceof Taken) {
      item.losses += 1;
      this.forget();
    }
    const isOver = !(error instanceof Stopped) && !((error instanceof Lost || error instanceof Taken) && item.losses < TRIES);
    Object.assign(item, isOver ? { state: "failed", problem: error.message } : { state: "waiting" });
  }

  async send(item) {
    if (item.choice === "") {
      item.there = await this.present.find(item);
      requireWanted(item);
      if (item.there?.isSame) return "skipped";
      if (item.there && item.file && !this.choose(item)) return "asking";
      if (item.choice === "skip") return "skipped";
    } else if (!item.there) item.there = await this.present.find(item);
    if (item.choice === "both") item.target = await this.present.free(item.path);
    item.state = "sending";
    await this.makeFolder(item.file ? item.path.slice(0, -1) : item.path);
    requireWanted(item);
    if (item.file) await this.put(item);
    return "done";
  }

  // The choice for the whole batch, where it is possible.
  choose(item) {
    const choice = this.choices.get(item.batch) ?? "";
    if (choice === "replace" && item.there.kind !== "filenode") return false;
    item.choice = choice;
    return choice !== "";
  }

  async put(item) {
    const label = Array.from(crypto.getRandomValues(new Uint8Array(12)), (byte) => byte.toString(16).padStart(2, "0")).join("");
    this.storing.watch(label, (stored) => {
      item.stored = Math.min(stored, item.size);
      this.tellSoon();
    });
    try {
      const isReplacing = item.choice === "replace";
      await store(`${this.at(item.target)}?progress=${label}&replace=${isReplacing}`, item, (sent, state) => {
        Object.assign(item, { sent, state });
        this.tellSoon();
      });
      item.replaced = isReplacing && item.there && !item.there.isMutable ? item.there.cap : "";
    } finally {
      this.storing.forget(label);
    }
  }

  // One at a time per path, so two files never create the same folder twice.
  makeFolder(path) {
    if (path.length === 0) return Promise.resolve();
    const key = path.join("/");
    if (!this.folders.has(key)) {
      const made = this.makeFolder(path.slice(0, -1)).then(() => require(fetch(`${this.at(path)}?t=mkdir`, { method: "PUT" })));
      this.folders.set(key, made);
    }
    return this.folders.get(key);
  }

  at(path) {
    return this.address + path.map(encodeURIComponent).join("/");
  }

  tellSoon() {
    this.timer ??= setTimeout(() => this.tell(), SHOW_MS);
  }

  tell() {
    clearTimeout(this.timer);
    this.timer = null;
    const count = { waiting: 0, looking: 0, asking: 0, sending: 0, storing: 0, done: 0, undone: 0, skipped: 0, failed: 0 };
    const sum = { total: 0, sent: 0, stored: 0 };
    for (const item of this.items) {
      count[item.state] += 1;
      if (item.state === "failed" || item.state === "skipped") continue;
      sum.total += item.size;
      sum.sent += item.sent;
      sum.stored += item.stored;
    }
    this.measure(sum);
    const left = this.items.filter((item) => !ENDED.includes(item.state)).length;
    const { isPaused, trouble, rates, items, active } = this;
    // Unsent bytes must be both sent and stored; until its rate is known, storing is assumed to be as fast as sending.
    const remaining = (sum.total - sum.sent) / rates.sent + (sum.total - sum.stored) / (rates.stored || rates.sent);
    this.show({ items, active, isPaused, trouble, rates, left, remaining, ...sum, ...count });
  }

  // Rates over the last few active seconds.
  measure(sum) {
    const now = performance.now();
    const passed = (now - this.seen.at) / 1000;
    if (passed < 0.1) return;
    for (const kind of ["sent", "stored"]) {
      const latest = Math.max(0, sum[kind] - this.seen[kind]) / passed;
      if (latest === 0) continue;
      const weight = this.rates[kind] === 0 ? 1 : 1 - Math.exp(-passed / PACE_S);
      this.rates[kind] += (latest - this.rates[kind]) * weight;
    }
    this.seen = { at: now, sent: sum.sent, stored: sum.stored };
  }
}

function requireWanted(item) {
  if (item.isRemoved) throw new Stopped();
}
