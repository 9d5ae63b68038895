// Live parts of a page, fetched again after each announcement of the gateway.
import { announce, element, fetchPage } from "./dom.js";

const QUIET_MS = 250;
const POLL_MS = 2000;

export function followLive(root) {
  for (const part of root.querySelectorAll("[data-live], [data-poll], [data-every]")) follow(part);
}

function follow(part) {
  let waiting = false;
  let again = false;
  let poll = null;

  async function refresh() {
    if (waiting) {
      again = true;
      return;
    }
    waiting = true;
    try {
      const page = await fetchPage(location.href);
      const found = page.getElementById(part.id);
      if (found && !part.contains(document.activeElement?.closest("input, button")) && !isSelectedIn(part)) {
        const before = verdict(part);
        keepFocus(part, () => part.replaceChildren(...found.childNodes));
        if (part.dataset.every && verdict(part) !== before) announce(verdict(part) || part.querySelector(".lead")?.textContent);
      }
    } catch {
      // The next announcement retries.
      if (part.dataset.every) sayLost(part);
    }
    part.dataset.followed = String(Number(part.dataset.followed ?? 0) + 1);
    setTimeout(() => {
      waiting = false;
      if (again) {
        again = false;
        refresh();
      }
    }, QUIET_MS);
  }

  if (part.dataset.every) {
    setInterval(() => document.hidden || refresh(), Number(part.dataset.every) * 1000);
    return;
  }
  if (!part.dataset.live) {
    poll = setInterval(async () => {
      await refresh();
      if (!part.querySelector(".busy")) finish(part, poll);
    }, POLL_MS);
    return;
  }
  const source = new EventSource(part.dataset.live);
  source.addEventListener("open", () => {
    clearInterval(poll);
    poll = null;
    refresh();
  });
  source.addEventListener("error", () => {
    if (source.readyState === EventSource.CLOSED && poll === null) poll = setInterval(refresh, POLL_MS);
  });
  for (const kind of ["message", "operation", "progress", "finished", "started", "event"]) source.addEventListener(kind, refresh);
  addEventListener("pagehide", () => {
    source.close();
    clearInterval(poll);
  });
}

// Announces the outcome, and removes what only made sense while the operation ran.
function finish(part, poll) {
  clearInterval(poll);
  announce(part.querySelector(".notice p")?.textContent ?? "Finished");
  for (const each of document.querySelectorAll("[data-while-running]")) {
    if (each.contains(document.activeElement)) document.getElementById("main").focus();
    each.remove();
  }
}

// What a person has selected, to copy it, stays as it is.
function isSelectedIn(part) {
  const selection = getSelection();
  return !selection.isCollapsed && part.contains(selection.anchorNode);
}

function verdict(part) {
  return part.querySelector(".notice p")?.textContent ?? "";
}

function sayLost(part) {
  if (part.querySelector("[data-lost]")) return;
  const words = "The gateway does not answer. Below is what it said last.";
  part.prepend(element("div", { class: "notice bad", role: "alert", "data-lost": "" }, element("p", {}, words)));
}

function keepFocus(part, change) {
  const focused = document.activeElement;
  const address = part.contains(focused) ? focused.getAttribute("href") : null;
  const id = part.contains(focused) ? focused.id : "";
  change();
  if (id) document.getElementById(id)?.focus();
  if (address) [...part.querySelectorAll("a[href]")].find((link) => link.getAttribute("href") === address)?.focus();
}
