import { filter, Subscription } from "rxjs";
import { Lazy } from "../../platform/lazy.js";
import { loaded } from "../../run/loaded.js";
import type { RuntimeConnection } from "../connect-runtime.js";
import type { LocalAgent } from "../local-agent.js";
import type { FrontendToolRunnerOptions } from "./frontend-tool-runner.js";
import type { FrontendTools } from "./frontend-tools.js";
import { mayWait } from "./may-wait.js";

/**
 * Runs the front-end tool calls of an agent's thread in this tab, each in one of the tabs that offer its tool, and goes on
 * with their results. The agent must follow its thread. `ThreadStore` does the same for what it shows.
 *
 * @returns ends it; handlers that run go on, and give their results
 */
export function runFrontendTools(
  runtime: Pick<RuntimeConnection, "toolCalls" | "threads">,
  agent: LocalAgent,
  tools: FrontendTools,
  options: FrontendToolRunnerOptions = {},
): () => void {
  const life = new Subscription();
  // Loaded when a call may wait: few threads have one.
  const runner = new Lazy(async () => {
    const { FrontendToolRunner } = await loaded(import("./frontend-tool-runner.js"));
    if (!life.closed) life.add(new FrontendToolRunner(runtime, agent, tools, options).begin());
  });
  life.add(
    mayWait(agent)
      .pipe(filter(Boolean))
      .subscribe(() => void runner.get().catch((error: Error) => options.failed?.(error))),
  );
  return () => life.unsubscribe();
}
