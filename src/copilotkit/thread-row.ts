import { createElement, useEffect, useRef, useState, type FormEvent, type ReactNode } from "react";
import type { ThreadSummary } from "../client/index.js";
import type { ThreadList } from "../react/index.js";
import type { ThreadListLabels } from "./thread-labels.js";

interface ThreadRowProps {
  readonly thread: ThreadSummary;
  readonly labels: ThreadListLabels;
  readonly isOpen: boolean;
  readonly open: () => void;
  readonly rename: ThreadList["rename"];
  readonly archive: (threadId: string, archived: boolean) => Promise<void>;
  readonly remove: () => Promise<void>;
}

type Doing = "nothing" | "renaming" | "asking";

/** A thread in the list: it opens, and is renamed in its place. */
export function ThreadRow(props: ThreadRowProps): ReactNode {
  const { thread, labels, isOpen, open, rename, archive, remove } = props;
  const [doing, setDoing] = useState<Doing>("nothing");
  const [failure, setFailure] = useState<string>();
  const title = thread.title.trim() || labels.untitled;
  const renaming = useRef<HTMLButtonElement>(null);
  const wasRenaming = useRef(false);

  // The field took the focus; without it, that would be nowhere.
  useEffect(() => {
    if (wasRenaming.current && doing === "nothing") renaming.current?.focus();
    wasRenaming.current = doing === "renaming";
  }, [doing]);

  const call = async (work: () => Promise<unknown>): Promise<void> => {
    setDoing("nothing");
    setFailure(undefined);
    await work().catch((error: unknown) => setFailure(error instanceof Error ? error.message : String(error)));
  };
  const action = (label: string, sign: string, onClick: () => void, more: object = {}): ReactNode =>
    createElement("button", { type: "button", "aria-label": label, title: label, onClick, ...more }, sign);

  if (doing === "renaming") {
    const save = (to: string): void => {
      const wanted = to.trim();
      if (wanted === "" || wanted === thread.title) return setDoing("nothing");
      void call(() => rename(thread.threadId, wanted));
    };
    return createElement(
      "li",
      null,
      createElement(RenameField, { label: labels.newTitle(title), title, save, leave: () => setDoing("nothing") }),
    );
  }
  return createElement(
    "li",
    null,
    thread.live &&
      createElement("span", { className: "agui-thread-running", role: "img", "aria-label": labels.running }),
    createElement(
      "button",
      {
        type: "button",
        className: "agui-thread-title",
        title: failure ?? title,
        onClick: open,
        ...(isOpen && { "aria-current": "true" }),
      },
      title,
    ),
    failure !== undefined && createElement("span", { role: "alert" }, failure),
    createElement(
      "span",
      { className: "agui-thread-actions" },
      action(labels.rename(title), "✎", () => setDoing("renaming"), { ref: renaming }),
      thread.archived
        ? action(labels.restore(title), "↥", () => void call(() => archive(thread.threadId, false)))
        : action(labels.archive(title), "↧", () => void call(() => archive(thread.threadId, true))),
      doing === "asking"
        ? action(labels.confirmDelete(title), "?", () => void call(remove), { onBlur: () => setDoing("nothing") })
        : action(labels.delete(title), "×", () => setDoing("asking")),
    ),
  );
}

interface RenameFieldProps {
  readonly label: string;
  readonly title: string;
  readonly save: (title: string) => void;
  readonly leave: () => void;
}

/** Enter saves, Escape and leaving the field do not. */
function RenameField({ label, title, save, leave }: RenameFieldProps): ReactNode {
  const [text, setText] = useState(title);
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => field.current?.select(), []);
  return createElement(
    "form",
    {
      onSubmit: (event: FormEvent) => {
        event.preventDefault();
        save(text);
      },
      style: { display: "contents" },
    },
    createElement("input", {
      ref: field,
      "aria-label": label,
      value: text,
      maxLength: 200,
      onChange: (event: { readonly target: { readonly value: string } }) => setText(event.target.value),
      onKeyDown: (event: { readonly key: string }) => event.key === "Escape" && leave(),
      onBlur: leave,
    }),
  );
}
