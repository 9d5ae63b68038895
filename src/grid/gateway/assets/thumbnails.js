// Loads the pictures of a list that are on the screen, a few at a time.
//
// The gateway makes no small pictures: it would have to decode what strangers stored. Cameras put one into the beginning of each
// photograph, which is read instead of the whole. A file without one is shown whole if it is small, and by its icon if it is not.
import { element } from "./dom.js";

const FIRST = 64 * 1024;
const MOST = 2 * 1024 * 1024;
const AT_ONCE = 4;
const TYPES = ["image/jpeg", "image/png", "image/webp", "image/gif"];
const TURNS = { 3: "180deg", 6: "90deg", 8: "270deg" };

export function loadThumbnails(list) {
  if (!list.classList.contains("pictures") || list.dataset.loading) return;
  list.dataset.loading = "true";
  const waiting = new Set();
  const loading = new Map();
  const observer = new IntersectionObserver((seen) => {
    for (const { target, isIntersecting } of seen) {
      if (isIntersecting) waiting.add(target);
      else if (!waiting.delete(target)) loading.get(target)?.abort();
    }
    pump();
  });
  for (const cell of list.querySelectorAll("tbody th.image")) if (!cell.querySelector("img")) observer.observe(cell);

  function pump() {
    for (const cell of waiting) {
      if (loading.size >= AT_ONCE) return;
      waiting.delete(cell);
      load(cell);
    }
  }

  async function load(cell) {
    const control = new AbortController();
    loading.set(cell, control);
    try {
      const shown = await thumbnail(cell.querySelector("a"), control.signal);
      observer.unobserve(cell);
      if (shown) cell.querySelector("a").prepend(shown);
    } catch {
      if (!control.signal.aborted) observer.unobserve(cell); // It cannot be read: the icon stays.
    } finally {
      loading.delete(cell);
      pump();
    }
  }

  list.addEventListener(
    "pictures",
    () => {
      observer.disconnect();
      waiting.clear();
      for (const control of loading.values()) control.abort();
      delete list.dataset.loading;
    },
    { once: true },
  );
}

// An image for the link's file; null if there is none small enough.
async function thumbnail(link, signal) {
  const address = new URL(link.href);
  address.search = "";
  const answer = await fetch(address, { headers: { Range: `bytes=0-${FIRST - 1}` }, signal });
  const type = (answer.headers.get("Content-Type") ?? "").split(";")[0];
  if (!answer.ok || !TYPES.includes(type)) {
    await answer.body?.cancel();
    return null;
  }
  const bytes = new Uint8Array(await answer.arrayBuffer());
  const size = Number((answer.headers.get("Content-Range") ?? "").split("/")[1] || bytes.length);
  const small = size > bytes.length ? embedded(bytes) : { bytes, turn: 1 };
  if (!small && size > MOST) return null;
  const source = small ? await dataAddress(small.bytes, type) : address.href;
  const image = element("img", { src: source, alt: "", decoding: "async", loading: "lazy" });
  if (small && TURNS[small.turn]) image.style.rotate = TURNS[small.turn];
  image.addEventListener("error", () => image.remove());
  return image;
}

function dataAddress(bytes, type) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.addEventListener("load", () => resolve(reader.result));
    reader.addEventListener("error", reject);
    reader.readAsDataURL(new Blob([bytes], { type }));
  });
}

// The small picture in the beginning of a photograph, and how it is turned; null if there is none, or it is not whole.
function embedded(bytes) {
  try {
    const view = new DataView(bytes.buffer);
    let at = 2;
    if (view.getUint16(0) !== 0xffd8) return null;
    while (view.getUint8(at) === 0xff && view.getUint8(at + 1) !== 0xda) {
      const isExif = view.getUint16(at) === 0xffe1 && view.getUint32(at + 4) === 0x45786966; // "Exif"
      if (isExif) return inExif(bytes, view, at + 10);
      at += 2 + view.getUint16(at + 2);
    }
  } catch {
    // It ends early: whatever it is, it is not shown.
  }
  return null;
}

// begin: of the TIFF structure, whose second directory describes the small picture.
function inExif(bytes, view, begin) {
  const isLittle = view.getUint16(begin) === 0x4949;
  const short = (at) => view.getUint16(at, isLittle);
  const long = (at) => view.getUint32(at, isLittle);
  const entries = (directory) => Array.from({ length: short(directory) }, (_, index) => directory + 2 + 12 * index);
  const first = begin + long(begin + 4);
  const turned = entries(first).find((at) => short(at) === 0x0112);
  const next = long(first + 2 + 12 * short(first));
  if (!next) return null;
  const second = entries(begin + next);
  const value = (tag) => long(second.find((at) => short(at) === tag) + 8);
  const start = begin + value(0x0201);
  const size = value(0x0202);
  if (start + size > bytes.length || view.getUint16(start) !== 0xffd8) return null;
  return { bytes: bytes.slice(start, start + size), turn: turned ? short(turned + 8) : 1 };
}
