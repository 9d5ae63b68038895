// Previews texts and documents. A file's bytes become text or a document of a fixed type, never markup of this page.
import { element, fetchPage, sizeText } from "./dom.js";

const TEXT_SIZE = 128 * 1024;
const PDF_SIZE = 64 * 1024 * 1024;

const SHOWN = { pdf: showDocument, markdown: showFormatted, text: showText };

export function showPreviews(root) {
  for (const place of root.querySelectorAll("[data-preview]")) {
    place.replaceChildren(element("p", { class: "busy", role: "status" }, "Loading…"));
    SHOWN[place.dataset.preview](place).catch((error) => {
      place.replaceChildren(element("p", {}, `The file cannot be shown: ${error.message}. `), link(place, "Open it"));
    });
  }
}

async function showText(place) {
  const answer = await fetch(place.dataset.address, { headers: { Range: `bytes=0-${TEXT_SIZE - 1}` } });
  if (answer.status === 416) {
    place.replaceChildren(element("p", {}, "The file is empty."));
    return;
  }
  if (!answer.ok) throw new Error((await answer.text()).split("\n")[0]);
  const bytes = new Uint8Array(await answer.arrayBuffer());
  if (bytes.length === 0) {
    place.replaceChildren(element("p", {}, "The file is empty."));
    return;
  }
  if (bytes.includes(0)) {
    place.replaceChildren(element("p", {}, "This is not text: download it to see it."));
    return;
  }
  const text = element("pre", { tabindex: "0", role: "region", "aria-label": "Contents" });
  text.textContent = new TextDecoder().decode(bytes);
  const whole = Number((answer.headers.get("Content-Range") ?? "").split("/")[1] || bytes.length);
  const more = whole > bytes.length ? element("p", { class: "hint" }, `The first ${sizeText(bytes.length)} of ${sizeText(whole)}.`) : null;
  place.replaceChildren(...[more, text].filter(Boolean));
}

// The gateway formats the text; what it cannot format is shown as text.
async function showFormatted(place) {
  const address = new URL(place.dataset.address, location.href);
  address.searchParams.set("t", "preview");
  let found = null;
  try {
    found = (await fetchPage(address)).getElementById("rendered");
  } catch {
    // Too large, or lost: the text, or its error, says which.
  }
  if (!found) {
    await showText(place);
    return;
  }
  const plain = element("button", { type: "button", class: "small" }, "Show as plain text");
  plain.addEventListener("click", () => showText(place));
  place.replaceChildren(document.adoptNode(found), plain);
}

async function showDocument(place) {
  const head = await fetch(place.dataset.address, { method: "HEAD" });
  if (!head.ok) throw new Error(`the gateway answered with HTTP status ${head.status}`);
  if (Number(head.headers.get("Content-Length")) > PDF_SIZE) {
    place.replaceChildren(element("p", {}, "Too large to show here. "), link(place, "Open it"));
    return;
  }
  const answer = await fetch(place.dataset.address);
  if (!answer.ok) throw new Error(`the gateway answered with HTTP status ${answer.status}`);
  const bytes = await answer.arrayBuffer();
  if (new TextDecoder("latin1").decode(bytes.slice(0, 5)) !== "%PDF-") throw new Error("it is not a PDF document");
  const address = URL.createObjectURL(new Blob([bytes], { type: "application/pdf" }));
  place.replaceChildren(element("iframe", { src: address, title: place.dataset.name || "Document" }));
}

function link(place, label) {
  return element("a", { href: place.dataset.address }, label);
}
