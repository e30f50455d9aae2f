import type { TemplateResult } from "lit/html.js";
import type { ThreadSummary } from "ag-ui-local-runtime/client";
import type { App } from "../app.js";
import { icons } from "../icons.js";
import { titleOf } from "../threads.js";
import { menuButton } from "./menu.js";

/** What can be done with a thread. */
export function threadMenu(app: App, thread: ThreadSummary): TemplateResult {
  return menuButton(`Actions for ${titleOf(thread)}`, () => [
    { label: "Rename…", icon: icons.edit, act: () => app.open({ is: "rename", thread }) },
    { label: thread.pinned ? "Unpin" : "Pin to top", icon: icons.pin, act: () => void app.actions.pin(thread) },
    { label: "Export as Markdown", icon: icons.download, act: () => void app.actions.export(thread) },
    {
      label: thread.archived ? "Restore" : "Archive",
      icon: icons.archive,
      act: () => void app.actions.archive(thread),
    },
    { label: "Delete", icon: icons.trash, act: () => app.delete(thread), isDanger: true },
  ]);
}
