// How much of the files that were sent is stored by now, as the gateway announces it.
const EVENTS = "/status/events";

export class Storing {
  constructor() {
    this.watched = new Map();
    this.source = null;
  }

  // onStored gets the bytes of the operation with this label that are on their way to servers, and those in all.
  watch(label, onStored) {
    this.watched.set(label, onStored);
    if (this.source) return;
    this.source = new EventSource(EVENTS);
    this.source.addEventListener("operation", (event) => {
      const operation = JSON.parse(event.data);
      this.watched.get(operation.label)?.(operation.bytes);
    });
  }

  forget(label) {
    this.watched.delete(label);
    if (this.watched.size > 0) return;
    this.source?.close();
    this.source = null;
  }
}
