// The current contents of a directory and those below it, fetched once per folder until forgotten.
import { require } from "./send.js";

export class Present {
  constructor(at) {
    this.at = at;
    this.listings = new Map();
  }

  forget() {
    this.listings.clear();
  }

  // The entry with the item's name: kind, size, cap, when it was linked, whether it equals the item; or null.
  async find({ file, path }) {
    const entry = (await this.list(path.slice(0, -1))).get(path.at(-1).normalize("NFC"));
    if (!entry) return null;
    const [kind, facts] = entry;
    const linked = facts.metadata?.tahoe?.linkmotime;
    const isUnchanged = facts.size === file?.size && typeof linked === "number" && file.lastModified <= linked * 1000;
    return {
      kind,
      size: facts.size,
      linked,
      isMutable: kind === "filenode" && facts.mutable === true,
      cap: facts.rw_uri ?? facts.ro_uri ?? "",
      isSame: file ? kind === "filenode" && isUnchanged : kind === "dirnode",
    };
  }

  // The path with a number before the extension that makes its name free.
  async free(path) {
    const taken = await this.list(path.slice(0, -1));
    const name = path.at(-1);
    const dot = name.lastIndexOf(".");
    const [stem, ending] = dot > 0 ? [name.slice(0, dot), name.slice(dot)] : [name, ""];
    let number = 2;
    while (taken.has(`${stem} (${number})${ending}`.normalize("NFC"))) number += 1;
    const found = `${stem} (${number})${ending}`;
    taken.set(found.normalize("NFC"), ["filenode", {}]);
    return [...path.slice(0, -1), found];
  }

  // From the top down, which avoids requests for missing folders.
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
