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

// Sends a file to an address, and returns its capability. item.request can be aborted; onSent receives the bytes sent. Throws Taken if the name is taken
// and the address forbids replacing it.
export function put(address, item, onSent) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    item.request = request;
    request.upload.addEventListener("progress", (event) => onSent(Math.min(event.loaded, item.size), "sending"));
    request.upload.addEventListener("load", () => onSent(item.size, "storing"));
    request.addEventListener("load", () => {
      if (request.status >= 200 && request.status < 300) resolve(request.responseText);
      else if (request.status === 409 && address.includes("replace=false")) reject(new Taken(firstLine(request.responseText, 409)));
      else reject(new Error(firstLine(request.responseText, request.status)));
    });
    request.addEventListener("abort", () => reject(new Stopped()));
    request.addEventListener("error", () => whyLost(item.file).then(reject));
    request.open("PUT", address);
    request.setRequestHeader("Content-Type", "application/octet-stream");
    request.send(item.file);
  });
}

async function whyLost(file) {
  try {
    await file.slice(0, 1).arrayBuffer();
    return new Lost();
  } catch {
    return new Error("it cannot be read any more: it was changed, moved or deleted since it was chosen");
  }
}

function firstLine(text, status) {
  return text.split("\n")[0].slice(0, 300) || `the gateway answered ${status}`;
}
