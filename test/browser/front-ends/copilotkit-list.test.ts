import { createElement as h } from "react";
import { createRoot } from "react-dom/client";
import { expect, onTestFinished, test, vi } from "vitest";
import { ThreadList, type ThreadListProps } from "../../../src/copilotkit/thread-list.js";
import { nextTask } from "../../../src/platform/clock.js";
import { RuntimeProvider } from "../../../src/react/index.js";
import { pageRuntime, root } from "./kit.js";

const button = (element: HTMLElement, label: string): HTMLButtonElement =>
  element.querySelector(`[aria-label="${label}"]`)!;

/** A list of threads on the page. */
async function listOf(threadIds: readonly string[], props: Partial<ThreadListProps> = {}) {
  const runtime = pageRuntime();
  for (const threadId of threadIds) {
    const agent = runtime.agent("echo", { threadId });
    agent.addMessage({ id: threadId, role: "user", content: threadId });
    await agent.runAgent();
  }
  const element = root();
  const mounted = createRoot(element);
  onTestFinished(() => mounted.unmount());
  const nothing = (): void => undefined;
  const shown = { threadId: undefined, onOpen: nothing, onNew: nothing, ...props };
  mounted.render(h(RuntimeProvider, { runtime }, h(ThreadList, shown)));
  return { element, runtime };
}

test("the focus stays on the button while it loads more", async () => {
  const { element } = await listOf(["one", "two", "three"], { limit: 1 });
  const more = (): HTMLButtonElement | undefined =>
    [...element.querySelectorAll("button")].find(({ textContent }) => textContent === "Show more");
  await vi.waitFor(() => expect(more()).toBeDefined());
  more()!.focus();
  more()!.click();
  await vi.waitFor(() => expect(element.querySelectorAll("li")).toHaveLength(2));
  expect(document.activeElement).toBe(more());
  // Whether this page was the last one is known with the next.
  await vi.waitFor(() => expect(more()!.getAttribute("aria-disabled")).toBe("false"));
  more()!.click();
  await vi.waitFor(() => expect(element.querySelectorAll("li")).toHaveLength(3));
  more()!.click();
  await vi.waitFor(() => expect(more()!.getAttribute("aria-disabled")).toBe("true"));
  await nextTask();
  expect(document.activeElement).toBe(more());
  // It goes away when it is left.
  more()!.blur();
  await vi.waitFor(() => expect(more()).toBeUndefined());
});

test("a thread that is deleted elsewhere is let go of, as one that is deleted in the list: once", async () => {
  const onNew = vi.fn();
  const { element, runtime } = await listOf(["one", "two"], { threadId: "two", onNew });
  await vi.waitFor(() => expect(button(element, "Delete one")).not.toBeNull());
  await runtime.threads.delete("one");
  await vi.waitFor(() => expect(button(element, "Delete one")).toBeNull());
  expect(onNew).not.toHaveBeenCalled();
  await runtime.threads.delete("two");
  await vi.waitFor(() => expect(button(element, "Delete two")).toBeNull());
  expect(onNew).toHaveBeenCalledTimes(1);
});

test("the focus stays in the list when the row that had it goes away", async () => {
  const onNew = vi.fn();
  const { element } = await listOf(["one", "two"], { threadId: "two", onNew });
  const newThread = (): Element => element.querySelector(".agui-thread-new")!;
  for (const [label, then] of [["Archive one"], ["Delete two", "Really delete two"]] as const) {
    await vi.waitFor(() => expect(button(element, label)).not.toBeNull());
    button(element, label).focus();
    button(element, label).click();
    if (then !== undefined) {
      await vi.waitFor(() => expect(button(element, then)).not.toBeNull());
      button(element, then).click();
    }
    await vi.waitFor(() => expect(button(element, label)).toBeNull());
    await vi.waitFor(() => expect(document.activeElement).toBe(newThread()));
  }
  expect(onNew).toHaveBeenCalledTimes(1);
});
