import { createElement as h } from "react";
import { createRoot } from "react-dom/client";
import { expect, onTestFinished, test, vi } from "vitest";
import { ThreadList } from "../../../src/copilotkit/thread-list.js";
import { RuntimeProvider } from "../../../src/react/index.js";
import { pageRuntime, root } from "./kit.js";

const button = (element: HTMLElement, label: string): HTMLButtonElement =>
  element.querySelector(`[aria-label="${label}"]`)!;

/** A list of threads on the page. @param limit how many it shows at first */
async function listOf(threadIds: readonly string[], limit?: number): Promise<HTMLElement> {
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
  const shown = { threadId: undefined, onOpen: nothing, onNew: nothing, ...(limit !== undefined && { limit }) };
  mounted.render(h(RuntimeProvider, { runtime }, h(ThreadList, shown)));
  return element;
}

test("the focus stays on the button while it loads more", async () => {
  const element = await listOf(["one", "two", "three"], 1);
  const more = (): HTMLButtonElement | undefined =>
    [...element.querySelectorAll("button")].find(({ textContent }) => textContent === "Show more");
  await vi.waitFor(() => expect(more()).toBeDefined());
  more()!.focus();
  more()!.click();
  await vi.waitFor(() => expect(element.querySelectorAll("li")).toHaveLength(2));
  expect(document.activeElement).toBe(more());
});

test("the focus stays in the list when the row that had it goes away", async () => {
  const element = await listOf(["one", "two"]);
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
});
