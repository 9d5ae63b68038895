// Files on their way into a directory: a few at a time, with the octets that really went out.
//
// What is there already and unchanged is skipped, so that the same folder can be dropped again after whatever broke.
// Pausing starts nothing new and lets what is on its way arrive; stopping lets those begin again later. Without a
// connection everything waits. Files that are stored stay stored, and only failed ones are sent again.
import { Present } from "./present.js";
import { Lost, Stopped, put, require } from "./send.js";

const AT_ONCE = 3;
const SHOW_MS = 120;
const PACE_S = 3;
const LOSSES = 2;

export class Queue {
  constructor(address, show) {
    this.address = address;
    this.show = show;
    this.items = [];
    this.next = 0;
    this.active = 0;
    this.isPaused = false;
    this.trouble = "";
    this.rate = 0;
    this.seen = { at: performance.now(), sent: 0 };
    this.folders = new Map();
    this.present = new Present((path) => this.at(path));
    this.timer = null;
    this.onIdle = () => {};
  }

  get isBusy() {
    return this.items.some((item) => ["waiting", "looking", "sending", "storing"].includes(item.state));
  }

  add(files) {
    if (!this.isBusy) this.present.forget();
    for (const { file, path } of files) {
      this.items.push({ file, path, size: file?.size ?? 0, sent: 0, state: "waiting", problem: "", isForced: false, losses: 0 });
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

  // Those on their way are taken back, and begin again when all goes on.
  stop() {
    this.isPaused = true;
    for (const item of this.items) if (item.state === "sending" || item.state === "storing") item.request?.abort();
    this.tell();
  }

  retry() {
    this.again("failed", {});
  }

  sendSkipped() {
    this.again("skipped", { isForced: true });
  }

  again(state, more) {
    for (const item of this.items) {
      if (item.state === state) Object.assign(item, { state: "waiting", sent: 0, problem: "", losses: 0, ...more });
    }
    this.forget();
    this.resume();
  }

  forget() {
    this.folders.clear();
    this.present.forget();
    this.next = 0;
  }

  pump() {
    while (!this.isPaused && this.active < AT_ONCE) {
      while (this.next < this.items.length && this.items[this.next].state !== "waiting") this.next += 1;
      const item = this.items[this.next];
      if (!item) break;
      this.active += 1;
      item.state = "looking";
      this.send(item)
        .then((state) => Object.assign(item, { state, sent: state === "done" ? item.size : 0 }))
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
    item.sent = 0;
    if (error instanceof Lost) {
      item.losses += 1;
      this.isPaused = true;
      this.trouble = error.message;
      this.forget();
    }
    if (error instanceof Stopped || (error instanceof Lost && item.losses < LOSSES)) {
      item.state = "waiting";
      this.next = 0;
    } else Object.assign(item, { state: "failed", problem: error.message });
  }

  async send(item) {
    if (!item.isForced && (await this.present.has(item))) return "skipped";
    item.state = "sending";
    await this.makeFolder(item.file ? item.path.slice(0, -1) : item.path);
    if (item.file) {
      await put(this.at(item.path), item, (sent, state) => {
        Object.assign(item, { sent, state });
        this.tellSoon();
      });
    }
    return "done";
  }

  // One after the other for each path, so that two files never make the same folder twice.
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
    const count = { waiting: 0, looking: 0, sending: 0, storing: 0, done: 0, skipped: 0, failed: 0 };
    let total = 0;
    let sent = 0;
    for (const item of this.items) {
      count[item.state] += 1;
      if (item.state !== "failed" && item.state !== "skipped") total += item.size;
      sent += item.sent;
    }
    this.measure(sent);
    const left = this.items.length - count.done - count.failed - count.skipped;
    const { isPaused, trouble, rate, items, active } = this;
    const remaining = rate > 0 ? (total - sent) / rate : Infinity;
    this.show({ items, active, isPaused, trouble, rate, left, total, sent, remaining, ...count });
  }

  // The rate of the last few seconds.
  measure(sent) {
    const now = performance.now();
    const passed = (now - this.seen.at) / 1000;
    if (passed < 0.1) return;
    const latest = Math.max(0, sent - this.seen.sent) / passed;
    const weight = this.rate === 0 ? 1 : 1 - Math.exp(-passed / PACE_S);
    this.rate += (latest - this.rate) * weight;
    this.seen = { at: now, sent };
  }
}
