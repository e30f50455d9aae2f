import { createElement as h } from "react";
import { createRoot } from "react-dom/client";
import { expect, onTestFinished, test, vi } from "vitest";
import { ThreadList } from "../../../src/copilotkit/thread-list.js";
import { RuntimeProvider } from "../../../src/react/index.js";
import { pageRuntime, root } from "./kit.js";

test("where no style sheet can be constructed (Safari before 16.4), the page has the style all the same", async () => {
  vi.stubGlobal("CSSStyleSheet", () => {
    throw new TypeError("Illegal constructor");
  });
  onTestFinished(() => void vi.unstubAllGlobals());
  const element = root();
  const mounted = createRoot(element);
  onTestFinished(() => mounted.unmount());
  const nothing = (): void => undefined;
  const list = h(ThreadList, { threadId: undefined, onOpen: nothing, onNew: nothing });
  mounted.render(h(RuntimeProvider, { runtime: pageRuntime() }, list));
  await vi.waitFor(() => expect(element.querySelector("nav")).not.toBeNull());
  expect(getComputedStyle(element.querySelector("nav")!).display).toBe("flex");
});
