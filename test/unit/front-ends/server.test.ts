import { createElement as h, type ReactNode } from "react";
import { renderToString } from "react-dom/server";
import type { Component } from "svelte";
import { render as renderSvelte } from "svelte/server";
import { createSSRApp, defineComponent, h as vueH } from "vue";
import { renderToString as renderVue } from "vue/server-renderer";
import { expect, test, vi } from "vitest";
import { RuntimeProvider, useRuntime, useRuntimeStatus, useThread, useThreads } from "../../../src/react/index.js";
import * as svelte from "../../../src/svelte/index.js";
import * as vue from "../../../src/vue/index.js";
import { reactPage, SERVED, vuePage } from "./hydrated-page.js";

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

test("a Svelte server shows what is empty, connects to nothing, and runs nothing", async () => {
  const seen: unknown[] = [];
  const see = (value: unknown): void => void seen.push(value);
  let chat!: svelte.Thread;
  /** A component is a function; this is what would stand in its script tag. */
  const script = (): void => {
    svelte.setRuntime(connect);
    chat = svelte.thread("t", { agentId: "a" });
    for (const store of [chat, svelte.threads(), svelte.runtimeStatus()]) store.subscribe(see);
    see(svelte.getRuntime());
  };
  expect(renderSvelte(script as unknown as Component).body).toBeDefined();
  expect(seen).toMatchObject([
    { threadId: "t", status: "loading" },
    { status: "loading" },
    { is: "connecting" },
    undefined,
  ]);
  await expect(chat.send("x")).rejects.toMatchObject({ code: "no-host" });
  for (const act of [chat.stop, () => chat.setState({})])
    expect(act).toThrow(expect.objectContaining({ code: "no-host" }));
});

test.each([
  ["React", async () => renderToString(reactPage(connect))],
  ["Vue", () => renderVue(vuePage(connect))],
])("a %s server renders the id of a thread that is given, and none for a new one", async (_, rendered) => {
  expect(await rendered()).toBe(SERVED);
});
