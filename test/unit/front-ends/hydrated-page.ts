import { createElement as h, type ReactNode } from "react";
import { createSSRApp, defineComponent, h as vueH, type App } from "vue";
import type { RuntimeConnection, ThreadSnapshot } from "../../../src/client/index.js";
import { RuntimeProvider, useRuntimeStatus, useThread, useThreads } from "../../../src/react/index.js";
import * as vue from "../../../src/vue/index.js";

const options = { agentId: "echo" };
const linkOf = ({ threadId }: ThreadSnapshot): string => `#${threadId}`;
const textOf = ({ status, messages }: ThreadSnapshot): string => `${status} ${messages.length}`;

/** What a server renders of both pages, as is tested in Node: a thread that is given, a new one, the connection and the list. */
export const SERVED = '<p><a href="#t">loading 0</a><a href="#">loading 0</a>connecting loading</p>';

function Page(): ReactNode {
  const threads = [useThread("t", options), useThread(undefined, options)];
  return h(
    "p",
    null,
    ...threads.map((thread) => h("a", { href: linkOf(thread) }, textOf(thread))),
    `${useRuntimeStatus().is} ${useThreads().status}`,
  );
}

export const reactPage = (runtime: () => RuntimeConnection): ReactNode => h(RuntimeProvider, { runtime }, h(Page));

const VuePage = defineComponent(() => {
  const threads = [vue.useThread("t", options), vue.useThread(undefined, options)];
  const status = vue.useRuntimeStatus();
  const list = vue.useThreads();
  return () =>
    vueH("p", [
      ...threads.map(({ value: thread }) => vueH("a", { href: linkOf(thread) }, textOf(thread))),
      `${status.value.is} ${list.value.status}`,
    ]);
});

export const vuePage = (connect: () => RuntimeConnection): App => createSSRApp(VuePage).use(vue.runtimePlugin(connect));
