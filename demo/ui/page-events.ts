import { typeOfPaste } from "../documents/intake.js";
import { PASTE_LIMIT } from "../documents/message.js";
import type { App } from "./app.js";
import { singleKeys } from "./single-keys.js";

const bringsFiles = (event: DragEvent): boolean => event.dataTransfer?.types.includes("Files") ?? false;

/** Files dropped anywhere on the page, files and long texts pasted anywhere, and the keys of the whole page. */
export function listenToPage(app: App): void {
  const setDropping = (dropping: boolean): void => {
    if (app.dropping === dropping) return;
    app.dropping = dropping;
    app.changed();
  };

  addEventListener("dragover", (event) => {
    if (!bringsFiles(event)) return;
    event.preventDefault();
    setDropping(true);
  });
  addEventListener("dragleave", (event) => {
    // Leaving the page, not one of its elements.
    if (event.relatedTarget === null) setDropping(false);
  });
  addEventListener("drop", (event) => {
    if (!bringsFiles(event)) return;
    event.preventDefault();
    setDropping(false);
    const files = [...(event.dataTransfer?.files ?? [])];
    if (files.length > 0) void app.attachFiles(files);
    app.focus("composer");
  });

  addEventListener("paste", (event) => {
    const data = event.clipboardData;
    if (!data) return;
    const text = data.getData("text/plain");
    const files = [...data.files];
    // A spreadsheet's cells come as text and as a picture of them: the text is meant.
    if (files.length > 0 && text === "") {
      event.preventDefault();
      void app.attachFiles(files);
      app.focus("composer");
    } else if (text.length > PASTE_LIMIT) {
      event.preventDefault();
      void app.attachText({ name: "Pasted text", type: typeOfPaste(text), text });
      app.focus("composer");
    }
  });

  addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.isComposing || app.dialog) return;
    const isTyping = event.target instanceof Element && event.target.matches("input:not([type=radio]), textarea");
    const isPlain = !event.ctrlKey && !event.metaKey && !event.altKey;
    const isCommand = (event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey;
    const isSingle = isPlain && !isTyping && singleKeys.areOn;
    if (event.key === "k" && isCommand) {
      app.threadsOpen = true;
      app.focus("search");
    } else if (event.key === "z" && isCommand && !isTyping && app.deletions.waiting.length > 0) app.undoDelete();
    else if (event.key === "?" && isSingle) app.open({ is: "shortcuts" });
    else if (event.key === "/" && isSingle) app.focus("composer");
    else return;
    event.preventDefault();
  });

  addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || event.defaultPrevented || event.isComposing || app.dialog) return;
    for (const details of document.querySelectorAll<HTMLDetailsElement>("details.popover[open]")) {
      details.open = false;
      details.querySelector("summary")?.focus();
      return;
    }
    if (app.threadsOpen) {
      app.threadsOpen = false;
      app.focus("threads-toggle");
    }
  });
  addEventListener("pointerdown", (event) => {
    for (const details of document.querySelectorAll<HTMLDetailsElement>("details.popover[open]")) {
      if (!(event.target instanceof Node && details.contains(event.target))) details.open = false;
    }
  });
}
