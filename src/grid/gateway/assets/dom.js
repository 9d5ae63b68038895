// Builds elements from values; text is only ever set as text.
export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key in made && typeof value !== "string") made[key] = value;
    else if (value !== null && value !== undefined) made.setAttribute(key, value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

export function announce(text) {
  const place = document.getElementById("announce");
  if (place && place.textContent !== text) place.textContent = text;
}

// The name of a control: its own, or the texts that it refers to.
export function labelOf(control) {
  const names = (control.getAttribute("aria-labelledby") ?? "").split(" ").map((id) => document.getElementById(id)?.textContent);
  return control.getAttribute("aria-label") ?? names.filter(Boolean).join(" ");
}

// Shows the names of icons on which a pointer rests.
export function watchHints(root) {
  root.addEventListener("pointerover", (event) => {
    const control = event.target.closest?.("#listing td > [aria-labelledby]");
    if (control && !control.title) control.title = labelOf(control);
  });
}

// An empty modal dialog. Closing it returns the focus to `from`, unless it was moved on purpose.
export function openDialog(from) {
  const dialog = element("dialog", { "aria-label": labelOf(from) || "Question" });
  document.body.append(dialog);
  dialog.addEventListener("close", () => {
    dialog.remove();
    if (dialog.returnValue !== "done") from.focus?.();
  });
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog || event.target.closest("[data-close]")) {
      event.preventDefault();
      dialog.close();
    }
  });
  dialog.showModal();
  return dialog;
}

// Parses a page of this gateway as a document.
export function parsePage(text) {
  const page = new DOMParser().parseFromString(text, "text/html");
  showTimes(page);
  return page;
}

const UTC_TIME = /^(\d{4}-\d\d-\d\d) (\d\d:\d\d) UTC$/;

// Shows times in the browser's zone. The gateway does not know it, and writes them in UTC, which a pointer still shows.
// Cells of lists need no element around the time: there are 500 of them.
export function showTimes(root) {
  for (const each of root.querySelectorAll("time, #listing td:nth-of-type(2)")) {
    const found = UTC_TIME.exec(each.textContent);
    if (!found) continue;
    each.title = found[0];
    each.firstChild.data = momentText(new Date(`${found[1]}T${found[2]}Z`));
  }
}

// A date and time in the browser's zone.
export function momentText(moment) {
  const two = (number) => String(number).padStart(2, "0");
  const day = [String(moment.getFullYear()).padStart(4, "0"), two(moment.getMonth() + 1), two(moment.getDate())].join("-");
  return `${day} ${two(moment.getHours())}:${two(moment.getMinutes())}`;
}

// Fetches a page of this gateway and parses it, or throws an Error whose message is a sentence.
export async function fetchPage(address, options = {}) {
  let answer;
  try {
    answer = await fetch(address, { credentials: "same-origin", referrerPolicy: "no-referrer", ...options });
  } catch {
    throw new Error("The connection to the gateway was lost. Try again.");
  }
  const text = await answer.text();
  const type = answer.headers.get("Content-Type") ?? "";
  const page = parsePage(type.includes("html") ? text : "");
  if (!answer.ok) {
    const said = type.includes("html") ? page.querySelector("main .notice p, main .lead, main p, p")?.textContent : text;
    throw new Error(sentence((said ?? "").trim().split("\n")[0] || `the gateway answered with HTTP status ${answer.status}`));
  }
  return page;
}

// The message with a capital letter and a period. The name of an argument, such as uri=, stays as it is.
function sentence(message) {
  const begun = message.split(" ")[0].endsWith("=") ? message : message[0].toUpperCase() + message.slice(1);
  return /[.?!]$/.test(begun) ? begun : `${begun}.`;
}

const UNITS = ["B", "kB", "MB", "GB", "TB", "PB"];

export function sizeText(size) {
  let unit = 0;
  let value = size;
  while (value >= 999.5 && unit < UNITS.length - 1) [value, unit] = [value / 1000, unit + 1];
  return unit === 0 ? `${Math.round(size)} B` : `${value.toFixed(value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2)} ${UNITS[unit]}`;
}

export function timeText(seconds) {
  if (!Number.isFinite(seconds)) return "…";
  const whole = Math.max(0, Math.round(seconds));
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
}
