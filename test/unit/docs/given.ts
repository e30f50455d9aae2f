/** What examples in documents use without saying where it comes from. A name that an example declares itself is its own. */
export const GIVEN = `
import type { AbstractAgent, RunAgentInput } from "@ag-ui/client";
import type { IndexedDBAgentRunner } from "ag-ui-local-runtime";
import type { HostFactories, LocalAgent, RuntimeConnection } from "ag-ui-local-runtime/client";

declare global {
  const hosts: HostFactories;
  const runtime: RuntimeConnection;
  const agent: LocalAgent;
  const agents: Record<string, AbstractAgent>;
  const poet: AbstractAgent;
  const runner: IndexedDBAgentRunner;
  const input: RunAgentInput;
  const threadId: string;
  const runId: string;
  function show(...what: unknown[]): void;
  function report(message: string, ...details: readonly unknown[]): void;
  function token(): string;
  function search(place: string, signal: AbortSignal): Promise<{ readonly name: string }>;
  function userOf(headers: Headers): Promise<string>;
  function owns(user: string, threadId: string): Promise<boolean>;
  /** Of TypeScript's lib "WebWorker", which cannot be had beside that of a page. */
  interface ServiceWorkerGlobalScope {
    readonly clients: { claim(): Promise<void> };
    addEventListener(type: "activate", listener: (event: { waitUntil(work: Promise<void>): void }) => void): void;
  }
  function mayUse(user: string, agentId: string): boolean;
}
`;
