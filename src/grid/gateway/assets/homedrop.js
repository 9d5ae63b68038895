// Files dropped anywhere on the first page: each gets a capability, shown with a button that copies it, or they go into the
// directory that is chosen beside.
import { watchCopies } from "./copy.js";
import { announce, element, sizeText } from "./dom.js";
import { watchDrops } from "./drops.js";
import { pickedFiles } from "./folders.js";
import { showOwn } from "./own.js";
import { put } from "./send.js";
import { Storing } from "./storing.js";
import { LateQueue } from "./upload.js";

export function makeHomeDrop(zone) {
  const files = element("input", { type: "file", multiple: true, hidden: true, id: "pick-files", "aria-label": "Files" });
  const pick = element("button", { type: "button", class: "primary" }, "Choose files");
  const done = element("ul", { class: "rows given", "aria-label": "Uploads", hidden: true });
  const panel = element("div", { class: "queue", hidden: true });
  const queues = new Map();
  const waiting = [];
  const storing = new Storing();
  let isBusy = false;
  pick.addEventListener("click", () => files.click());
  files.addEventListener("change", () => {
    add(pickedFiles(files.files));
    files.value = "";
  });
  zone.append(element("p", {}, "Drop files anywhere on this page"), element("div", { class: "buttons" }, pick), files, done, panel);
  zone.hidden = false;
  watchDrops(zone, add);
  addEventListener("beforeunload", (event) => {
    if (!isBusy && ![...queues.values()].some((queue) => queue.isBusy)) return;
    event.preventDefault();
    event.returnValue = true; // For browsers that know nothing newer.
  });

  function add(found) {
    const into = document.getElementById("drop-into");
    if (into?.value) {
      queueInto(into.value, into.selectedOptions[0].textContent).add(found);
      return;
    }
    const kept = found.filter(({ file }) => file);
    if (kept.length < found.length) announce("Empty folders were skipped: they can only be stored in a directory.");
    for (const { file, path } of kept) {
      const item = { file, size: file.size, ...row(path.join("/"), file.size) };
      item.remove.addEventListener("click", () => remove(item));
      waiting.push(item);
    }
    pump();
  }

  // Cancels an upload in any state, or dismisses an ended one from the list.
  function remove(item) {
    item.isRemoved = true;
    item.request?.abort();
    item.line.remove();
    done.hidden = done.childElementCount === 0;
    announce(item.isEnded ? `${item.name} was removed from the list` : `The upload of ${item.name} was canceled`);
    (done.querySelector("[data-remove]") ?? pick).focus();
  }

  function queueInto(address, name) {
    if (!queues.has(address)) {
      const queue = new LateQueue(address, () => showOwn());
      queue.panel.className = "";
      panel.append(element("p", {}, `Into ${name}`), queue.panel);
      queues.set(address, queue);
    }
    panel.hidden = false;
    return queues.get(address);
  }

  function row(name, size) {
    const bar = element("progress", { max: 1, value: 0, "aria-label": name });
    const word = element("small", { class: "word" }, `Waiting, ${sizeText(size)}`);
    const part = element("div", {}, element("bdi", {}, name), word, bar);
    const remove = element("button", { type: "button", class: "small", "data-remove": "", "aria-label": `Cancel ${name}` }, "Cancel");
    const line = element("li", {}, part, remove);
    done.hidden = false;
    done.prepend(line);
    return { name, bar, word, line, remove };
  }

  async function pump() {
    if (isBusy) return;
    isBusy = true;
    while (waiting.length) await store(waiting.shift());
    isBusy = false;
    showOwn();
  }

  async function store(item) {
    if (item.isRemoved) return;
    const label = crypto.randomUUID?.() ?? String(Math.random()).slice(2);
    storing.watch(label, (stored) => show(item, item.size, Math.min(stored, item.size)));
    try {
      const address = `/uri?${new URLSearchParams({ progress: label, filename: item.name })}`;
      give(item, await put(address, item, (sent) => show(item, sent, 0)));
    } catch (error) {
      if (item.isRemoved) return;
      item.word.textContent = `Not stored: ${error.message}`;
      item.word.classList.add("trouble");
      item.bar.hidden = true;
      announce(`${item.name} was not stored: ${error.message}`);
    } finally {
      storing.forget(label);
      item.isEnded = true;
      item.remove.textContent = "Dismiss";
      item.remove.setAttribute("aria-label", `Dismiss ${item.name}`);
    }
  }
}

function show(item, sent, stored) {
  item.bar.value = item.size === 0 ? 0 : Math.max(item.bar.value, (sent + stored) / (2 * item.size));
  item.word.textContent = stored || sent === item.size ? `Storing ${sizeText(item.size)}` : `Sent ${sizeText(sent)} of ${sizeText(item.size)}`;
}

// Shows the capability of a stored file.
function give(item, cap) {
  item.bar.remove();
  item.word.textContent = `Stored, ${sizeText(item.size)}. Keep its capability: it is the only way to the file.`;
  const text = cap.trim();
  const field = element("input", { class: "cap", type: "text", readonly: "", value: text, "aria-label": `Capability of ${item.name}`, spellcheck: "false" });
  const copy = element("button", { type: "button", "data-copy": text, "aria-label": `Copy the capability of ${item.name}` }, "Copy");
  const query = new URLSearchParams({ t: "info", filename: item.name });
  const open = element("a", { class: "button quiet", href: `/uri/${encodeURIComponent(text)}?${query}`, "aria-label": `Open ${item.name}` }, "Open");
  item.remove.className = "quiet";
  const given = element("div", { class: "copy" }, field, copy, open, item.remove);
  item.line.append(given);
  watchCopies(given);
  announce(`${item.name} is stored`);
}
