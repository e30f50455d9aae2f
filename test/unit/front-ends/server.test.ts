import { createElement as h, type ReactNode } from "react";
import { renderToString } from "react-dom/server";
import { createSSRApp, defineComponent, h as vueH } from "vue";
import { renderToString as renderVue } from "vue/server-renderer";
import { expect, test, vi } from "vitest";
import { RuntimeProvider, useRuntime, useRuntimeStatus, useThread, useThreads } from "../../../src/react/index.js";
import * as vue from "../../../src/vue/index.js";

const shown = "connecting loading 0 loading false";
const connect = () => {
  throw new Error("a server connects to nothing");
};

test("a React server renders what is empty, connects to nothing, and runs nothing", async () => {
  let send!: (content: string) => Promise<string>;
  function Chat(): ReactNode {
    const thread = useThread(undefined, { agentId: "a", suspense: true });
    send = thread.send;
    const { status, messages } = thread;
    return [useRuntimeStatus().is, status, messages.length, useThreads().status, useRuntime() !== undefined].join(" ");
  }
  expect(renderToString(h(RuntimeProvider, { runtime: connect }, h(Chat)))).toBe(shown);
  await expect(send("x")).rejects.toMatchObject({ code: "no-host" });
});

test("a Vue server renders what is empty, connects to nothing, and runs nothing", async () => {
  let send!: (content: string) => Promise<string>;
  const Chat = defineComponent(() => {
    const thread = vue.useThread(undefined, { agentId: "a" });
    const threads = vue.useThreads();
    const status = vue.useRuntimeStatus();
    const runtime = vue.useRuntime();
    send = thread.value.send;
    return () =>
      vueH("p", [
        [
          status.value.is,
          thread.value.status,
          thread.value.messages.length,
          threads.value.status,
          runtime !== undefined,
        ].join(" "),
      ]);
  });
  const made = vi.fn(connect);
  expect(await renderVue(createSSRApp(Chat).use(vue.runtimePlugin(made)))).toBe(`<p>${shown}</p>`);
  expect(made).not.toHaveBeenCalled();
  await expect(send("x")).rejects.toMatchObject({ code: "no-host" });
});
