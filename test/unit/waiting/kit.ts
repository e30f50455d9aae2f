import { EventType, type AbstractAgent, type BaseEvent } from "@ag-ui/client";
import { onTestFinished, vi } from "vitest";
import { connectRuntime, type RuntimeConnection } from "../../../src/client/connect-runtime.js";
import type { ConnectRuntimeOptions } from "../../../src/client/host-link.js";
import type { Network } from "../../../src/platform/network.js";
import type { WaitingRun } from "../../../src/wire/waiting-shapes.js";
import { serveRuntime, type ServeRuntimeOptions } from "../../../src/worker/serve-runtime.js";
import { agentOf, freshDb, quiet } from "../runner/kit.js";

/** A network that a test switches. */
export function network(isOnline = true): Network & { set: (isOnline: boolean) => void } {
  const listeners = new Set<() => void>();
  const state = { isOnline };
  return {
    get isOnline() {
      return state.isOnline;
    },
    onChange: (listener, signal) => {
      listeners.add(listener);
      signal.addEventListener("abort", () => listeners.delete(listener), { once: true });
    },
    set: (now) => {
      state.isOnline = now;
      for (const listener of listeners) listener();
    },
  };
}

/** An agent that says what it was asked last; `run` by `run` it waits until it is let on. What it executed, in order. */
export function gatedAgent(): {
  agent: AbstractAgent;
  executed: string[];
  letOn: (runId: string) => void;
  open: () => void;
} {
  const executed: string[] = [];
  const gates = new Map<string, () => void>();
  const passed = new Set<string>();
  let isOpen = false;
  const letOn = (runId: string): void => {
    passed.add(runId);
    gates.get(runId)?.();
  };
  const agent = agentOf(async function* ({ runId, messages }, { signal }) {
    executed.push(runId);
    const messageId = `${runId}-a`;
    yield { type: EventType.TEXT_MESSAGE_START, messageId, role: "assistant" } as BaseEvent;
    if (!isOpen && !passed.has(runId)) {
      await new Promise<void>((resolve) => {
        gates.set(runId, resolve);
        signal.addEventListener("abort", () => resolve(), { once: true });
      });
    }
    const delta = String(messages.findLast(({ role }) => role === "user")?.content);
    yield { type: EventType.TEXT_MESSAGE_CONTENT, messageId, delta } as BaseEvent;
    yield { type: EventType.TEXT_MESSAGE_END, messageId } as BaseEvent;
  });
  return {
    agent,
    executed,
    letOn,
    open: () => {
      isOpen = true;
      for (const runId of gates.keys()) letOn(runId);
    },
  };
}

/** A host in this context, closed when the test ends. */
export function hostOf(options: ServeRuntimeOptions & { readonly dbName?: string }) {
  const host = serveRuntime({ dbName: freshDb(), stopGraceMs: 50, logger: quiet, ...options });
  onTestFinished(() => host.close());
  const connect = (more: Omit<ConnectRuntimeOptions, "hosts"> = {}): RuntimeConnection => {
    const runtime = connectRuntime({ hosts: { page: async () => host.connect() }, ...more });
    onTestFinished(() => runtime.close());
    return runtime;
  };
  return { host, connect };
}

/** What a list of waiting runs says, as short text. */
export const shown = (runs: readonly WaitingRun[]): string[] =>
  runs.map(({ runId, reason }) => `${runId} ${reason.is}`);

/** Waits for a condition, for as long as a busy machine takes. */
export const until = (condition: () => void | Promise<void>): Promise<void> =>
  vi.waitFor(condition, { timeout: 60_000, interval: 20 });
