import { useEffect, useRef } from "react";
import type { FrontendTool } from "../client/index.js";
import { useStores } from "./provider.js";

/** A tool without its handler. */
export type FrontendToolDefinition = Omit<FrontendTool, "handler">;

/**
 * Offers a tool to the agents of the page's threads while the component is mounted. Each call runs in one tab, once: see
 * `FrontendTool`. The handler of the latest rendering is called.
 *
 * @param tool may be a new object with each rendering
 * @param handler absent: calls wait in `toolCalls` of the thread until somebody answers (`answerToolCall`)
 */
export function useFrontendTool<Args = unknown>(
  tool: FrontendToolDefinition,
  handler?: FrontendTool<Args>["handler"],
): void {
  const stores = useStores();
  const latest = useRef({ tool, handler });
  useEffect(() => {
    latest.current = { tool, handler };
  });
  const isHandled = handler !== undefined;
  // Equal definitions are the same tool.
  const definition = JSON.stringify(tool);
  useEffect(() => {
    const run: FrontendTool<Args>["handler"] = (args, context) => latest.current.handler?.(args, context);
    return stores?.tools.add<Args>({ ...latest.current.tool, ...(isHandled && { handler: run }) });
  }, [stores, isHandled, definition]);
}
