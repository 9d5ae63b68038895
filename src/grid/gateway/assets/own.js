// The part of the first page for a browser that `grid web` opened: its directories and recent uploads.
//
// The address that `grid web` opens ends with a token, which works once: it is exchanged for a cookie and a key, and removed from
// the address. On the page between, the page of this gateway to go on to follows it. The key stays in this browser, apart from what other ports of this machine store.
import { watchCopies } from "./copy.js";
import { announce, parsePage } from "./dom.js";

const KEY = "grid-home";

export async function showOwn() {
  const place = document.querySelector("[data-own]");
  if (!place) return;
  const given = new URLSearchParams(location.hash.slice(1));
  const isNew = given.has("own") && (await enter(given.get("own")));
  if (place.hasAttribute("data-entrance")) return location.replace(given.get("then")?.startsWith("/uri/") ? given.get("then") : "/");
  const key = ownKey();
  if (!key) return;
  const answer = await fetch("/home", { headers: { "X-Grid-Home": key }, referrerPolicy: "no-referrer" }).catch(() => null);
  if (answer?.status === 403) forget();
  if (!answer?.ok) return;
  // The page was made for a visitor, before this browser was known. The address has no token now, so this happens once.
  if (isNew && place.hasAttribute("data-visit")) return location.reload();
  const page = parsePage(await answer.text());
  const chosen = place.querySelector("#drop-into")?.value ?? "";
  place.replaceChildren(...document.adoptNode(page.getElementById("own")).childNodes);
  place.hidden = false;
  const into = place.querySelector("#drop-into");
  if (into && [...into.options].some((option) => option.value === chosen)) into.value = chosen;
  watchCopies(place);
  place.querySelector("[data-leave]").addEventListener("click", () => leave(place));
}

async function enter(token) {
  history.replaceState(null, "", location.pathname + location.search);
  const answer = await post("enter", { token });
  if (!answer?.ok) {
    announce("This link has already been used or has expired: run grid web again.");
    return false;
  }
  try {
    localStorage.setItem(KEY, (await answer.json()).key);
  } catch {
    announce("This browser does not let this page store data, so it cannot show your directories.");
    return false;
  }
  return true;
}

async function leave(place) {
  await post("leave", {});
  forget();
  place.hidden = true;
  place.replaceChildren();
  announce("Forgotten: this browser no longer shows your directories.");
  document.getElementById("main").focus();
}

function post(t, fields) {
  const body = new URLSearchParams({ t, ...fields });
  return fetch("/home", { method: "POST", body, referrerPolicy: "no-referrer" }).catch(() => null);
}

// The key of this browser, null if it has none.
export function ownKey() {
  try {
    return localStorage.getItem(KEY);
  } catch {
    return null;
  }
}

function forget() {
  try {
    localStorage.removeItem(KEY);
  } catch {
    // Nothing was kept.
  }
}
