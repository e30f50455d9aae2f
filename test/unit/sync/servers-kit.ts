import { filter, firstValueFrom } from "rxjs";
import { onTestFinished } from "vitest";
import { connectRuntime } from "../../../src/client/connect-runtime.js";
import type { Clock } from "../../../src/platform/clock.js";
import { memoryHost } from "../../../src/runtime/memory-host.js";
import { startHost, type HostOptions } from "../../../src/runtime/node.js";
import type { AgentRuntimeOptions } from "../../../src/runtime/options.js";
import { serveRuntime } from "../../../src/worker/serve-runtime.js";
import { freshDb, quiet } from "../runner/kit.js";
import type { MemorySpace } from "./memory-space.js";

/** A host on a server, in step. */
export async function server(space: MemorySpace, name: string, options: Omit<HostOptions, "sync">, clock?: Clock) {
  const of = { logger: quiet, ...options, sync: { space, device: name } };
  const host = await (clock === undefined ? startHost(of) : memoryHost(of, clock));
  onTestFinished(() => host.close());
  await firstValueFrom(host.status$.pipe(filter(({ isCurrent }) => isCurrent)));
  return host;
}

/** A browser: a worker, and a tab of it. */
export function device(space: MemorySpace, name: string, options: Partial<AgentRuntimeOptions> = {}) {
  const host = serveRuntime({ dbName: freshDb(), agents: {}, sync: { space, device: name }, ...options });
  const tab = () => {
    const runtime = connectRuntime({ hosts: { page: async () => host.connect() } });
    onTestFinished(() => runtime.close());
    return runtime;
  };
  onTestFinished(() => host.close());
  return { host, runtime: tab(), tab };
}

export type Tab = ReturnType<typeof device>["runtime"];

/** Resolves when the tab's host has heard of a server with the agent. */
export async function sees(runtime: Tab, agentId: string): Promise<void> {
  await firstValueFrom(
    runtime.status$.pipe(
      filter((status) => "sync" in status && status.sync?.isCurrent === true),
      filter(
        (status) => "sync" in status && status.sync?.devices.some(({ agents }) => agents?.includes(agentId)) === true,
      ),
    ),
  );
}

/** Asks a question in a tab. */
export function ask(runtime: Tab, agentId: string, threadId: string, runId: string, how: Record<string, unknown> = {}) {
  const agent = runtime.agent(agentId, { threadId });
  agent.addMessage({ id: `${runId}-u`, role: "user", content: `asked in ${runId}` });
  return agent.runAgent({ runId, ...how });
}

/** What the call of a run comes to that was stopped before it began. */
export const STOPPED_EARLY = { result: undefined, newMessages: [] };

export const runOf = (runtime: Tab, threadId: string, runId: string) => runtime.runner().getRun(runId, { threadId });
export const textsOf = async (runtime: Tab, threadId: string): Promise<unknown[]> =>
  (await runtime.threads.messages(threadId)).messages.map(({ content }) => content);
