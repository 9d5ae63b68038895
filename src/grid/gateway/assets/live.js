// Live parts of a page, fetched again after each announcement of the gateway.
import { announce, fetchPage } from "./dom.js";

const QUIET_MS = 250;
const POLL_MS = 2000;

export function followLive(root) {
  for (const part of root.querySelectorAll("[data-live], [data-poll]")) follow(part);
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
      if (found && !part.contains(document.activeElement?.closest("input, button"))) {
        keepFocus(part, () => part.replaceChildren(...found.childNodes));
      }
      part.dataset.followed = String(Number(part.dataset.followed ?? 0) + 1);
    } catch {
      // The next announcement retries.
    }
    setTimeout(() => {
      waiting = false;
      if (again) {
        again = false;
        refresh();
      }
    }, QUIET_MS);
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

function keepFocus(part, change) {
  const focused = document.activeElement;
  const address = part.contains(focused) ? focused.getAttribute("href") : null;
  change();
  if (address) [...part.querySelectorAll("a[href]")].find((link) => link.getAttribute("href") === address)?.focus();
}
