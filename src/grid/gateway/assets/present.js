// What a directory and those below it hold already, asked for once for each folder until it is forgotten.
import { require } from "./send.js";

export class Present {
  constructor(at) {
    this.at = at;
    this.listings = new Map();
  }

  forget() {
    this.listings.clear();
  }

  // Whether there is such a file of this size, linked since it was last changed; or such a folder.
  async has({ file, path }) {
    const entry = (await this.list(path.slice(0, -1))).get(path.at(-1).normalize("NFC"));
    if (!entry) return false;
    const [kind, facts] = entry;
    if (!file) return kind === "dirnode";
    const linked = facts.metadata?.tahoe?.linkmotime;
    return kind === "filenode" && facts.size === file.size && typeof linked === "number" && file.lastModified <= linked * 1000;
  }

  // From the top down, so that nothing is asked for that is not there.
  list(path) {
    const key = path.join("/");
    if (!this.listings.has(key)) this.listings.set(key, this.fetch(path));
    return this.listings.get(key);
  }

  async fetch(path) {
    if (path.length > 0) {
      const found = (await this.list(path.slice(0, -1))).get(path.at(-1).normalize("NFC"));
      if (found?.[0] !== "dirnode") return new Map();
    }
    const answer = await require(fetch(`${this.at(path)}?t=json`));
    const [, facts] = await answer.json();
    return new Map(Object.entries(facts.children ?? {}));
  }
}
