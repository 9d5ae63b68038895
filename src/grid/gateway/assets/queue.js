// Files on their way into a directory: a few at a time, with the octets that really went out.
//
// Pausing starts nothing new and lets what is on its way arrive, so nothing that was sent is sent twice; files that
// are stored stay stored, and only failed ones are sent again.
const AT_ONCE = 3;
const SHOW_MS = 120;
const PACE_S = 3;

export class Queue {
  constructor(address, show) {
    this.address = address;
    this.show = show;
    this.items = [];
    this.active = 0;
    this.isPaused = false;
    this.rate = 0;
    this.seen = { at: performance.now(), sent: 0 };
    this.folders = new Map();
    this.timer = null;
    this.onIdle = () => {};
  }

  get isBusy() {
    return this.items.some((item) => item.state !== "done" && item.state !== "failed");
  }

  add(files) {
    for (const { file, path } of files) {
      this.items.push({ file, path, size: file?.size ?? 0, sent: 0, state: "waiting", problem: "" });
    }
    this.pump();
  }

  pause() {
    this.isPaused = true;
    this.tell();
  }

  resume() {
    this.isPaused = false;
    this.pump();
  }

  retry() {
    for (const item of this.items) if (item.state === "failed") Object.assign(item, { state: "waiting", sent: 0, problem: "" });
    this.folders.clear();
    this.pump();
  }

  pump() {
    while (!this.isPaused && this.active < AT_ONCE) {
      const item = this.items.find((candidate) => candidate.state === "waiting");
      if (!item) break;
      this.active += 1;
      item.state = "sending";
      this.send(item)
        .then(() => Object.assign(item, { state: "done", sent: item.size }))
        .catch((error) => Object.assign(item, { state: "failed", problem: error.message, sent: 0 }))
        .finally(() => {
          this.active -= 1;
          this.pump();
          if (!this.isBusy) this.onIdle();
        });
    }
    this.tell();
  }

  async send(item) {
    const folder = item.file ? item.path.slice(0, -1) : item.path;
    await this.makeFolder(folder);
    if (item.file) await this.put(item);
  }

  // One after the other for each path, so that two files never make the same folder twice.
  makeFolder(path) {
    if (path.length === 0) return Promise.resolve();
    const key = path.join("/");
    if (!this.folders.has(key)) {
      const made = this.makeFolder(path.slice(0, -1)).then(async () => {
        const answer = await fetch(`${this.at(path)}?t=mkdir`, { method: "PUT" });
        if (!answer.ok) throw new Error(await said(answer));
      });
      this.folders.set(key, made);
    }
    return this.folders.get(key);
  }

  put(item) {
    return new Promise((resolve, reject) => {
      const request = new XMLHttpRequest();
      request.upload.addEventListener("progress", (event) => {
        item.sent = Math.min(event.loaded, item.size);
        this.tellSoon();
      });
      request.upload.addEventListener("load", () => {
        Object.assign(item, { state: "storing", sent: item.size });
        this.tellSoon();
      });
      request.addEventListener("load", () => {
        if (request.status >= 200 && request.status < 300) resolve();
        else reject(new Error(request.responseText.split("\n")[0].slice(0, 300) || `the gateway answered ${request.status}`));
      });
      request.addEventListener("error", () => reject(new Error("the connection was lost")));
      request.open("PUT", this.at(item.path));
      request.setRequestHeader("Content-Type", "application/octet-stream");
      request.send(item.file);
    });
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
    const sum = (value) => this.items.reduce((total, item) => total + value(item), 0);
    const is = (state) => (item) => Number(item.state === state);
    const failed = sum(is("failed"));
    const total = sum((item) => (item.state === "failed" ? 0 : item.size));
    const sent = sum((item) => item.sent);
    const done = sum(is("done"));
    this.measure(sent);
    this.show({
      items: this.items,
      count: this.items.length,
      left: this.items.length - done - failed,
      active: this.active,
      isPaused: this.isPaused,
      rate: this.rate,
      remaining: this.rate > 0 ? (total - sent) / this.rate : Infinity,
      total,
      sent,
      done,
      failed,
    });
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

async function said(answer) {
  return (await answer.text()).split("\n")[0].slice(0, 300) || `the gateway answered ${answer.status}`;
}
