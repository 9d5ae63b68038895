// Sends files, and distinguishes three ways to end without an answer.
export class Lost extends Error {
  constructor() {
    super("the connection to the gateway was lost");
  }
}

export class Stopped extends Error {}

// Returns a successful answer; throws Lost if there is none, else an Error with its message.
export async function require(asked) {
  let answer;
  try {
    answer = await asked;
  } catch {
    throw new Lost();
  }
  if (!answer.ok) throw new Error(firstLine(await answer.text(), answer.status));
  return answer;
}

export class Taken extends Error {}

const RESUMABLE_SIZE = 8 * 1024 * 1024;
const TUS = { "Tus-Resumable": "1.0.0" };

// Sends a file to an address; a large one goes on where it broke off, also after this page was loaded again.
export async function store(address, item, onSent) {
  if (item.size < RESUMABLE_SIZE) return put(address, item, onSent);
  let offset = await offsetOf(item);
  if (offset === null) {
    const headers = { ...TUS, "Upload-Length": String(item.size) };
    const begun = await require(fetch("/uploads", { method: "POST", headers }));
    remember(item, new URL(begun.headers.get("Location")).pathname);
    offset = 0;
  }
  if (item.isRemoved) {
    forget(item);
    throw new Stopped();
  }
  onSent(offset, "sending");
  if (offset < item.size) {
    const headers = { ...TUS, "Upload-Offset": String(offset), "Content-Type": "application/offset+octet-stream" };
    await request("PATCH", item.upload, item, item.file.slice(offset), headers, (sent) => onSent(offset + sent, "sending"));
  }
  onSent(item.size, "storing");
  const identifier = item.upload.split("/").at(-1);
  await request("PUT", `${address}&upload=${identifier}`, item, null, {}, () => {});
  remember(item, "");
}

// Discards what was sent of a file.
export function forget(item) {
  if (item.upload) fetch(item.upload, { method: "DELETE", headers: TUS }).catch(() => {});
  remember(item, "");
}

// The bytes of the file that the gateway has, or null if it has no upload of it.
async function offsetOf(item) {
  item.upload ||= sessionStorage.getItem(keyOf(item)) ?? "";
  if (!item.upload) return null;
  let answer;
  try {
    answer = await fetch(item.upload, { method: "HEAD", headers: TUS });
  } catch {
    throw new Lost();
  }
  const isSame = answer.ok && Number(answer.headers.get("Upload-Length")) === item.size;
  if (!isSame) remember(item, "");
  return isSame ? Number(answer.headers.get("Upload-Offset")) : null;
}

function remember(item, upload) {
  item.upload = upload;
  if (upload) sessionStorage.setItem(keyOf(item), upload);
  else sessionStorage.removeItem(keyOf(item));
}

const keyOf = ({ file, path }) => `upload ${file.size} ${file.lastModified} ${path.join("/")}`;

// Sends a file to an address, and returns its capability. item.request can be aborted; onSent receives the bytes sent. Throws Taken if the name is taken
// and the address forbids replacing it.
export function put(address, item, onSent) {
  const headers = { "Content-Type": "application/octet-stream" };
  return request("PUT", address, item, item.file, headers, (sent, isAll) => onSent(sent, isAll ? "storing" : "sending"));
}

function request(method, address, item, body, headers, onSent) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    const size = body?.size ?? 0;
    item.request = request;
    request.upload.addEventListener("progress", (event) => onSent(Math.min(event.loaded, size), false));
    request.upload.addEventListener("load", () => onSent(size, true));
    request.addEventListener("load", () => {
      if (request.status >= 200 && request.status < 300) resolve(request.responseText);
      else if (request.status === 409 && address.includes("replace=false")) reject(new Taken(firstLine(request.responseText, 409)));
      else reject(new Error(firstLine(request.responseText, request.status)));
    });
    request.addEventListener("abort", () => reject(new Stopped()));
    request.addEventListener("error", () => whyLost(item.file).then(reject));
    request.open(method, address);
    for (const [name, value] of Object.entries(headers)) request.setRequestHeader(name, value);
    request.send(body);
  });
}

async function whyLost(file) {
  try {
    await file.slice(0, 1).arrayBuffer();
    return new Lost();
  } catch {
    return new Error("the file can no longer be read: it was changed, moved or deleted after you chose it");
  }
}

function firstLine(text, status) {
  return text.split("\n")[0].slice(0, 300) || `the gateway answered with HTTP status ${status}`;
}
