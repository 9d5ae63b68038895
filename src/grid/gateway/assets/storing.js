// Tracks how much of the sent files is stored, from the gateway's announcements.
const EVENTS = "/status/events";

export class Storing {
  constructor() {
    this.watched = new Map();
    this.source = null;
  }

  // onStored receives, for the operation with this label, the bytes being stored and the total.
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
