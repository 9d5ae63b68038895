// Collects files with their folders' names from what was dropped or chosen.
export function pickedFiles(list) {
  return Array.from(list, (file) => ({ file, path: (file.webkitRelativePath || file.name).split("/") }));
}

export async function droppedFiles(transfer) {
  // Take the entries before the first await: afterwards the transfer is empty.
  const entries = Array.from(transfer.items, (item) => item.webkitGetAsEntry?.()).filter(Boolean);
  if (entries.length === 0) return pickedFiles(transfer.files);
  const found = [];
  for (const entry of entries) await walk(entry, [], found);
  return found;
}

async function walk(entry, above, found) {
  const path = [...above, entry.name];
  if (entry.isFile) {
    const file = await new Promise((resolve, reject) => entry.file(resolve, reject));
    found.push({ file, path });
    return;
  }
  const reader = entry.createReader();
  let isEmpty = true;
  for (;;) {
    const batch = await new Promise((resolve, reject) => reader.readEntries(resolve, reject));
    if (batch.length === 0) break;
    isEmpty = false;
    for (const inner of batch) await walk(inner, path, found);
  }
  if (isEmpty) found.push({ file: null, path });
}
