import { AgentRuntime, createRuntimeHandler, type RuntimeHandlerOptions } from "ag-ui-local-runtime/runtime";
import { contractRuntimeOptions } from "./contract-agents.js";
import { enveloped, type WayIn } from "./way-in.js";

/** The way to a handler in this context. `options.basePath` as in RuntimeHandlerOptions. */
export function handlerWay(
  runtime: AgentRuntime,
  { basePath = "", mode, ...rest }: Omit<RuntimeHandlerOptions, "runtime"> = {},
): WayIn {
  const handler = createRuntimeHandler({ runtime, basePath, ...(mode !== undefined && { mode }), ...rest });
  const url = (path: string): string => `http://localhost${basePath}${path}`;
  const way: WayIn = {
    name: "handler",
    request: (path, init) => handler(new Request(url(path), init)),
    url,
    close: () => runtime.close(),
  };
  return mode === "single-route" ? enveloped(way) : way;
}

/** A runtime with the contract's agents. `dbName`: where IndexedDB is, its database. */
export const contractRuntime = (options: Partial<ConstructorParameters<typeof AgentRuntime>[0]> = {}): AgentRuntime =>
  new AgentRuntime({
    ...contractRuntimeOptions(),
    ...(options.runner === undefined && { stopGraceMs: 50 }),
    ...options,
  });
