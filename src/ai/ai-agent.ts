import { defined } from "../platform/defined.js";
import type { AbstractAgent, BaseEvent, RunAgentInput } from "@ag-ui/client";
import type { ContinuingAgent, HostedRun } from "../run/hosted.js";
import { loaded } from "../run/loaded.js";
import { checkNames } from "../run/options.js";
import { checkTools, repeatableIn } from "./check-tools.js";
import { invalidInput } from "../run/errors.js";
import { GeneratorAgent } from "../runner/agent/generator-agent.js";
import { AI_NAMES, type AiAgentOptions, type AiTool } from "./options.js";

class AiAgent extends GeneratorAgent implements ContinuingAgent {
  readonly continues = true;
  repeatableTools: readonly string[];
  hosted?: HostedRun;
  /** Headers of the call; the runtime sets them on the copy that it runs. */
  headers: Record<string, string> = {};
  private options: AiAgentOptions;

  constructor(options: AiAgentOptions) {
    const { agentId, description, debug } = options;
    super(defined({ agentId, description, debug }));
    this.options = options;
    this.repeatableTools = repeatableIn(typeof options.tools === "function" ? {} : options.tools, options);
  }

  /** The AI SDK is ten times as large as the rest of an agent: it is loaded once a tab has its thread, or by the first run. */
  preload(): Promise<typeof import("./model-run.js")> {
    return loaded(import("./model-run.js"));
  }

  protected override async *events(input: RunAgentInput, signal: AbortSignal): AsyncGenerator<BaseEvent> {
    const { options, headers, hosted } = this;
    const { modelRun } = await this.preload();
    yield* modelRun(options, { input, signal, headers, ...(hosted && { hosted }) });
  }

  /** The base class copies only its own fields, onto an object that no constructor made. */
  override clone(): this {
    const copy = super.clone();
    // An object that no constructor made has not even the fields with a constant value.
    Object.assign(copy, { continues: true, repeatableTools: this.repeatableTools, headers: { ...this.headers } });
    copy.options = this.options;
    delete copy.hosted;
    return copy;
  }
}

/**
 * Makes an agent of a model: the Vercel AI SDK (`ai`, a peer dependency) asks it, and is loaded at the first run. Its tools
 * with `execute` run in the host, those of the page (`input.tools`) end the run and wait for their results.
 *
 * @throws RunnerError `invalid-input`
 */
export function aiAgent(options: AiAgentOptions): AbstractAgent {
  checkNames(options, AI_NAMES, { of: "aiAgent", isRequired: true });
  if ((options as Partial<AiAgentOptions>).model === undefined) {
    throw invalidInput("model", "aiAgent needs a model: one of the AI SDK, or a function that makes it");
  }
  if (typeof options.tools !== "function") checkTools(options.tools);
  return new AiAgent(options);
}

/** Types the arguments of a tool's functions by its schema. Gives the tool as it is. */
export const aiTool = <Args, Result>(tool: AiTool<Args, Result>): AiTool<Args, Result> => tool;
