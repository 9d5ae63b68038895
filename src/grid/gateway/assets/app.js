// Enhances the pages beyond forms and links. The markup works without scripts.
import { watchCopies } from "./copy.js";
import { watchEnding } from "./ending.js";
import { watchDialogs } from "./dialog.js";
import { showTimes, watchHints } from "./dom.js";
import { watchForms } from "./forms.js";
import { watchFilter } from "./filter.js";
import { watchReplacements } from "./replace.js";
import { watchPane } from "./pane.js";
import { watchPictures } from "./pictures.js";
import { showPreviews } from "./preview.js";
import { watchSelection } from "./selection.js";
import { followLive } from "./live.js";
import { watchShortcuts } from "./shortcuts.js";
import { makeHomeDrop } from "./homedrop.js";
import { showOwn } from "./own.js";
import { makeDropzone } from "./upload.js";

showTimes(document);
watchCopies(document);
watchEnding(document);
watchDialogs(document);
watchFilter(document);
watchHints(document);
watchForms(document);
watchSelection(document.getElementById("listing"));
watchPictures(document.getElementById("listing"));
watchReplacements(document);
showPreviews(document);
watchPane(document);
followLive(document);
watchShortcuts(document);

for (const zone of document.querySelectorAll("[data-upload]")) {
  makeDropzone(zone, zone.dataset.upload);
  for (const plain of document.querySelectorAll("[data-plain-upload]")) plain.hidden = false;
}
for (const zone of document.querySelectorAll("[data-drop-home]")) makeHomeDrop(zone);
showOwn();
addEventListener("hashchange", () => showOwn());
for (const details of document.querySelectorAll(".actions details")) {
  details.addEventListener("toggle", () => {
    if (details.open) details.querySelector("input:not([type=hidden])")?.focus();
  });
}
