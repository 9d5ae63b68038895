// Shows the files of a list in a dialog: their contents, with the next and previous file.
//
// The dialog is an entry of the browser's history, so that Back closes it instead of leaving the list. Forward, and a return from
// the page of a file, open it again.
import { announce, element, fetchPage, openDialog } from "./dom.js";
import { focusEntry } from "./listing.js";
import { showPreviews } from "./preview.js";

const LONGEST_WAY_MS = 500;
const SWIPE = 50; // Pixels of a finger's way that is meant.

let current = null;
let left = Promise.resolve(); // Until the browser has left the entry of a pane that was closed.

export function watchPane(root) {
  root.addEventListener("click", (event) => {
    const link = event.target.closest?.("#listing tbody a[href*='t=info']");
    if (!link || event.defaultPrevented || event.button !== 0) return;
    if (event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    enter(link);
  });
  addEventListener("popstate", (event) => follow(event.state?.pane));
  follow(history.state?.pane);
}

async function enter(link) {
  await left;
  if (current) return;
  history.pushState({ pane: link.href }, "");
  open(link, link.href);
}

// Shows what the current entry of the history says. address: of the file in the pane, if there is one.
function follow(address) {
  if (!address) {
    if (current) for (const dialog of [...document.querySelectorAll("dialog[open]")].reverse()) dialog.close();
  } else if (current) {
    show(current, address, "");
  } else {
    const link = [...document.querySelectorAll("#listing tbody a")].find((each) => each.href === address);
    open(link ?? document.getElementById("main"), address);
  }
}

function leave() {
  left = new Promise((resolve) => {
    addEventListener("popstate", resolve, { once: true });
    setTimeout(resolve, LONGEST_WAY_MS); // A tab that was restored may have nothing to go back to.
  });
  history.back();
}

async function open(from, address) {
  const dialog = openDialog(from);
  dialog.classList.add("pane");
  dialog.setAttribute("aria-label", from.getAttribute("aria-label") ?? (from.matches("a") ? from.textContent : "File"));
  const pane = { dialog, name: "", turn: 0 };
  current = pane;
  dialog.addEventListener("close", () => {
    current = null;
    release(dialog);
    if (history.state?.pane) leave();
    left.then(() => current ?? focusEntry(pane.name));
  });
  dialog.addEventListener("click", (event) => {
    const step = event.target.closest?.(".neighbors a");
    if (!step) return;
    event.preventDefault();
    show(pane, step.href, step.rel);
  });
  dialog.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey || event.target.closest("audio, video, input, pre")) return;
    const rel = { ArrowLeft: "prev", "[": "prev", ArrowRight: "next", "]": "next" }[event.key];
    const step = rel && dialog.querySelector(`.neighbors a[rel=${rel}]`);
    if (!step) return;
    event.preventDefault();
    show(pane, step.href, rel);
  });
  watchSwipes(dialog, (rel) => {
    const step = dialog.querySelector(`.neighbors a[rel=${rel}]`);
    if (step) show(pane, step.href, rel);
  });
  await show(pane, address, "");
}

// A finger that moves to the left asks for the next file, and to the right for the previous one, as in albums of photographs.
function watchSwipes(dialog, go) {
  let began = null;
  dialog.addEventListener("touchstart", (event) => {
    const isFree = event.touches.length === 1 && (visualViewport?.scale ?? 1) < 1.01 && !event.target.closest("audio, video, input, pre, .scroll");
    began = isFree ? event.touches[0] : null;
  }, { passive: true });
  dialog.addEventListener("touchend", (event) => {
    const ended = event.changedTouches[0];
    const right = began && getSelection().isCollapsed ? ended.clientX - began.clientX : 0;
    if (Math.abs(right) > SWIPE && Math.abs(right) > 2 * Math.abs(ended.clientY - began.clientY)) go(right < 0 ? "next" : "prev");
    began = null;
  }, { passive: true });
}

// rel: the link that was followed, which keeps the focus.
async function show(pane, address, rel) {
  const { dialog } = pane;
  const turn = (pane.turn += 1);
  if (!dialog.firstChild) dialog.replaceChildren(element("p", { class: "busy" }, "Loading…"));
  dialog.setAttribute("aria-busy", "true");
  let page;
  try {
    page = await fetchPage(address);
  } catch (error) {
    page = error;
  }
  if (turn !== pane.turn || !dialog.open) return;
  dialog.removeAttribute("aria-busy");
  release(dialog);
  if (page instanceof Error) {
    dialog.replaceChildren(element("p", { class: "notice bad", role: "alert" }, page.message), closing());
    return;
  }
  const preview = page.getElementById("preview");
  const steps = page.querySelector(".neighbors");
  if (!preview && !steps) {
    location.replace(address); // A directory, or a file that nothing can be shown of: it takes the place of the pane.
    return;
  }
  fill(pane, page, address, preview ?? page.querySelector(".facts"), steps);
  const heading = dialog.querySelector("h1");
  (dialog.querySelector(`.neighbors a[rel=${rel || "none"}]`) ?? heading).focus();
  announce(heading.textContent);
}

function fill(pane, page, address, contents, steps) {
  const { dialog } = pane;
  const adopt = (node) => (node ? document.adoptNode(node) : null);
  const heading = element("h1", { tabindex: "-1" }, page.querySelector("main h1").textContent);
  const buttons = adopt(page.querySelector("main .heading .buttons")) ?? element("div", { class: "buttons" });
  buttons.append(element("a", { class: "button quiet", href: address }, "Details"), closing());
  dialog.replaceChildren(...[heading, adopt(steps), adopt(contents), buttons].filter(Boolean));
  dialog.setAttribute("aria-label", heading.textContent);
  dialog.scrollTop = 0;
  pane.name = heading.textContent;
  history.replaceState({ pane: address }, "");
  showPreviews(dialog);
}

function closing() {
  return element("button", { type: "button", "data-close": "" }, "Close");
}

// Frees the documents that were shown.
function release(dialog) {
  for (const frame of dialog.querySelectorAll("iframe[src^='blob:']")) URL.revokeObjectURL(frame.src);
}
