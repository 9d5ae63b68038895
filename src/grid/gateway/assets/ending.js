// Share links that end, on the page that helps to share: makes them, lists them and takes them back.
//
// Only a browser that `grid web` opened has the key that this takes. The gateway answers with the parts of the page.
import { watchCopies } from "./copy.js";
import { announce, element, fetchPage } from "./dom.js";
import { ownKey } from "./own.js";

const PARTS = ["made-link", "share-links"];

export function watchEnding(root) {
  const place = root.querySelector("[data-ending]");
  const key = place && ownKey();
  if (!key) return;
  const form = place.querySelector("form");
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    ask(place, key, new URLSearchParams(new FormData(form)), "The link is made", () => form.reset());
  });
  place.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-take-back]");
    if (!button) return;
    const name = button.parentElement.querySelector("bdi").textContent;
    await ask(place, key, new URLSearchParams({ t: "revoke", id: button.dataset.takeBack }), `Taken back: ${name}`);
    form.querySelector("select").focus();
  });
  ask(place, key, null, "");
}

// body: null asks for the list. done: called on success. The card appears once the gateway has answered.
async function ask(place, key, body, words, done) {
  if (place.getAttribute("aria-busy") === "true") return;
  place.setAttribute("aria-busy", "true");
  try {
    const headers = { "X-Grid-Home": key, Accept: "text/html" };
    const page = await fetchPage("/shares", { method: body ? "POST" : "GET", body, headers });
    for (const id of PARTS) {
      place.querySelector(`#${id}`).replaceChildren(...document.adoptNode(page.getElementById(id)).childNodes);
    }
    place.hidden = false;
    done?.();
    watchCopies(place.querySelector("#made-link"));
    if (words) announce(words);
  } catch (error) {
    const problem = element("p", { class: "notice bad", role: "alert" }, error.message);
    if (body) place.querySelector("#made-link").replaceChildren(problem);
  } finally {
    place.removeAttribute("aria-busy");
  }
}
