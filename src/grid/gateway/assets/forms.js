// Forms whose answer appears in a dialog over their page: a question, an error, or what was removed.
//
// Without scripts, the same forms work as usual. A successful form returns the directory's page, whose new list replaces the old
// one; the focus moves to the form's entry, and the change is announced.
import { announce, element, openDialog, parsePage } from "./dom.js";
import { watchCopies } from "./copy.js";
import { focusEntry, showListing } from "./listing.js";

export function watchForms(root) {
  root.addEventListener("submit", (event) => {
    const form = event.target.closest("form[data-ask]");
    if (!form || event.submitter?.value === "zip") return; // The browser saves the answer.
    event.preventDefault();
    if (form.getAttribute("aria-busy") !== "true") send(form, event.submitter);
  });
}

async function send(form, submitter) {
  const fields = new FormData(form);
  if (submitter?.name) fields.append(submitter.name, submitter.value);
  const neighbor = neighborOf(fields.get("from_name") ?? fields.get("name") ?? "");
  form.setAttribute("aria-busy", "true");
  try {
    const headers = { Accept: "text/html" };
    const answer = await fetch(form.getAttribute("action"), { method: "POST", body: fields, headers, referrerPolicy: "no-referrer" });
    const page = parsePage(await answer.text());
    if (answer.ok && answer.redirected) await finish(form, fields, page, neighbor);
    else await show(form, submitter, page, answer, fields, neighbor);
  } catch {
    report(form, "The connection to the gateway was lost. The change may or may not have been made: reload this page before you try again.");
  } finally {
    form.removeAttribute("aria-busy");
  }
}

async function finish(form, fields, page, neighbor) {
  const dialog = form.closest("dialog");
  form.reset();
  const details = form.closest(".actions details");
  if (details) details.open = false;
  if (dialog) {
    dialog.returnValue = "done";
    dialog.close();
  }
  await showListing(page); // Focus nothing in a list that is about to be replaced.
  announce(doneText(form, fields));
  if (!focusEntry(resultName(fields)) && !focusEntry(neighbor)) document.getElementById("main").focus();
}

// Shows the answered page in the form's dialog, or in a new one.
async function show(form, submitter, page, answer, fields, neighbor) {
  const main = page.querySelector("main");
  if (!main) {
    report(form, `The gateway answered with HTTP status ${answer.status}.`);
    return;
  }
  const dialog = form.closest("dialog") ?? openDialog(submitter ?? form);
  const isQuestion = main.querySelector("[data-question]") !== null; // Nothing has changed yet: what is selected stays so.
  dialog.replaceChildren(...document.adoptNode(main).childNodes);
  watchCopies(dialog);
  const heading = dialog.querySelector("h1");
  if (heading) {
    heading.tabIndex = -1;
    dialog.setAttribute("aria-label", heading.textContent);
    heading.focus();
  }
  if (answer.ok && !isQuestion) {
    announce(heading?.textContent ?? "Done");
    await showListing();
    dialog.addEventListener("close", () => focusEntry(resultName(fields)) || focusEntry(neighbor), { once: true });
  }
}

function report(form, text) {
  form.querySelector("[data-problem]")?.remove();
  form.append(element("p", { class: "notice bad", role: "alert", "data-problem": "" }, text));
}

function resultName(fields) {
  if (fields.get("t") === "relink" || fields.get("t") === "unlink") return "";
  return (fields.get("to_name") ?? fields.get("name") ?? "").trim();
}

function doneText(form, fields) {
  const word = form.dataset.ask;
  const old = fields.get("from_name");
  const name = fields.get("to_name") ?? fields.get("name") ?? old ?? "";
  if (word === "Renamed") return `Renamed ${old} to ${name}`;
  if (word.includes(" ")) return word;
  return `${word} ${name}`;
}

// The entry after the one of this name, or before it: where to look once that is gone.
function neighborOf(name) {
  const names = Array.from(document.querySelectorAll("#listing tbody bdi"), (shown) => shown.textContent);
  const at = names.indexOf(name);
  return at < 0 ? "" : (names[at + 1] ?? names[at - 1] ?? "");
}
