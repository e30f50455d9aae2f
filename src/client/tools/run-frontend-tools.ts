import { filter, Subscription, take, tap } from "rxjs";
import { Lazy } from "../../platform/lazy.js";
import { loaded } from "../../run/loaded.js";
import type { RuntimeConnection } from "../connect-runtime.js";
import type { LocalAgent } from "../local-agent.js";
import { readUntilDone } from "../read-until-done.js";
import type { FrontendToolRunner, FrontendToolRunnerOptions } from "./frontend-tool-runner.js";
import { NO_CALLS, type FrontendTools, type OfferedTools, type ShownToolCall } from "./frontend-tools.js";
import { mayWait } from "./may-wait.js";

/**
 * The front-end tool calls of the thread that an agent follows. What runs them is loaded when the page offers a tool, or a
 * call may wait: few pages have any.
 */
export class ToolCallsOfAgent {
  private readonly runner: Lazy<FrontendToolRunner>;

  constructor(
    runtime: Pick<RuntimeConnection, "toolCalls" | "threads">,
    private readonly agent: LocalAgent,
    private readonly tools: OfferedTools,
    private readonly options: FrontendToolRunnerOptions = {},
  ) {
    this.runner = new Lazy(async () => {
      const { FrontendToolRunner: Runner } = await loaded(import("./frontend-tool-runner.js"));
      return new Runner(runtime, agent, tools, options);
    });
  }

  /**
   * Runs calls from now on.
   *
   * @param changed called with the calls that wait, now and after each change
   * @returns ends it; handlers that run go on, and give their results
   */
  begin(changed: (calls: readonly ShownToolCall[]) => void = () => undefined): () => void {
    const life = new Subscription();
    // A page that offers tools has what runs them before it goes offline; a failure is told when a call waits.
    const preload = (): void => void this.runner.get().catch(() => undefined);
    const { tools } = this;
    if (tools.isEmpty) life.add(tools.changes$.pipe(take(1)).subscribe(preload));
    else preload();
    const read = async (): Promise<void> => {
      const runner = await this.runner.get();
      if (life.closed) return;
      life.add(runner.calls$.subscribe(changed));
      life.add(runner.begin());
    };
    life.add(
      mayWait(this.agent)
        .pipe(
          // What was shown when it ended is over.
          tap((threadId) => threadId === undefined && changed(NO_CALLS)),
          filter(Boolean),
          take(1),
        )
        .subscribe(() => life.add(readUntilDone(read, (error) => this.options.failed?.(error)))),
    );
    return () => life.unsubscribe();
  }

  /** See {@link FrontendToolRunner.answer}. */
  async answer(toolCallId: string, result: unknown): Promise<string> {
    return (await this.runner.get()).answer(toolCallId, result);
  }

  /** See {@link FrontendToolRunner.runAgain}. */
  async runAgain(toolCallId: string): Promise<void> {
    return (await this.runner.get()).runAgain(toolCallId);
  }
}

/**
 * Runs the front-end tool calls of an agent's thread in this tab, each in one of the tabs that offer its tool, and goes on
 * with their results. The agent must follow its thread. `ThreadStore` does the same for what it shows.
 *
 * @returns ends it; handlers that run go on, and give their results
 */
export const runFrontendTools = (
  runtime: Pick<RuntimeConnection, "toolCalls" | "threads">,
  agent: LocalAgent,
  tools: FrontendTools,
  options: FrontendToolRunnerOptions = {},
): (() => void) => new ToolCallsOfAgent(runtime, agent, tools, options).begin();
