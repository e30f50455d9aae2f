import type { AgentConfig, JsonPatchOperation, RunAgentInput } from "@ag-ui/client";
import type { FlexibleSchema, LanguageModel, ModelMessage, streamText, Tool } from "ai";
import { AGENT_NAMES, FUNCTION, ID, OBJECT, TEXT, TEXTS, TIMEOUT, type Check, type Names } from "../run/options.js";

/** A schema as the AI SDK takes it (Zod, Standard Schema, its own), or a plain JSON Schema, which checks nothing. */
export type AiSchema<T = unknown> = FlexibleSchema<T> | Readonly<Record<string, unknown>>;

/** What the functions among an agent's options are given of a run. */
export interface AiRun {
  readonly input: RunAgentInput;
  /**
   * Headers of the call that started the run, as far as the runtime forwards them (by default `x-*`; see
   * `forwardHeaders`). They are stored nowhere: a run that goes on after a crash has none.
   */
  readonly headers: Readonly<Record<string, string>>;
  /** Aborts when the run is to stop. */
  readonly signal: AbortSignal;
  /** Has `end` called when the run is over, however it ends: to close what the function opened. */
  onEnd(end: () => unknown): void;
}

/** What `system` is given, in addition. */
export interface AiSystemRun extends AiRun {
  /** The thread's state, as it is before this step. A copy. */
  readonly state: unknown;
}

/** What a tool's `execute` is given besides its arguments. */
export interface AiToolRun extends AiRun {
  /** Idempotency key: the same for the same call, also when it is run again after a crash. */
  readonly toolCallId: string;
  /** The thread's state, as it is now. A copy. */
  readonly state: unknown;
  /**
   * Replaces the state (STATE_SNAPSHOT).
   *
   * @throws Error where it is undefined; nothing was changed then
   */
  setState(state: unknown): void;
  /**
   * Changes the state by a JSON Patch (STATE_DELTA).
   *
   * @throws Error where it does not apply; nothing was changed then
   */
  patchState(patch: readonly JsonPatchOperation[]): void;
  /** The conversation as the model was given it. */
  readonly messages: readonly ModelMessage[];
  /** The same as `signal`: by this name tools of the AI SDK know it. */
  readonly abortSignal: AbortSignal;
}

/** Methods are compared both ways, so tools with different arguments fit into one record. */
interface Asked<Args> {
  asked(args: Args, run: AiToolRun): boolean | Promise<boolean>;
}

/** A tool of a model. Tools of the AI SDK (`tool()`, MCP clients) are taken as they are. */
export interface AiTool<Args = unknown, Result = unknown> {
  readonly description?: string;
  /** Schema of the arguments. */
  readonly parameters: AiSchema<Args>;
  /**
   * Runs in the host, at the same time as other calls of the step. Gives a text, or what becomes JSON. What it throws is
   * told to the model. Without it the run ends with the call, and the page answers it.
   */
  execute?(args: Args, run: AiToolRun): Result | Promise<Result>;
  /** The run ends with an interrupt, and the call is executed once somebody approved it. Default false. */
  readonly needsApproval?: boolean | Asked<Args>["asked"];
  /** A call may be executed twice where the host dies in the middle; `toolCallId` is its idempotency key. Default false. */
  readonly repeatable?: boolean;
}

/** A tool of the AI SDK, with all that it has: `tool()`, one of an MCP client, one that a provider runs. */
export type AiSdkTool = Pick<Tool, "inputSchema">;

/** Tools by their names. */
export type AiTools = Readonly<Record<string, AiTool | AiSdkTool>>;

/** Settings of each call of the model, as the AI SDK names them. */
export type AiSettings = Pick<
  Parameters<typeof streamText>[0],
  | "frequencyPenalty"
  | "headers"
  | "maxOutputTokens"
  | "maxRetries"
  | "presencePenalty"
  | "providerOptions"
  | "reasoning"
  | "repairToolCall"
  | "seed"
  | "stopSequences"
  | "temperature"
  | "timeout"
  | "toolChoice"
  | "topK"
  | "topP"
>;

/** Options of {@link aiAgent}. */
export interface AiAgentOptions extends Pick<AgentConfig, "agentId" | "description" | "debug"> {
  /** A model of the AI SDK, or a function that makes it for each run: it loads the provider late, or takes a key. */
  readonly model: LanguageModel | ((run: AiRun) => LanguageModel | Promise<LanguageModel>);
  /** Instructions to the model; a function is called before each step. What the page gives as `context` follows them. */
  readonly system?: string | ((run: AiSystemRun) => string | undefined | Promise<string | undefined>);
  /** A function is called for each run: for tools of an MCP server, or of the person who asks. */
  readonly tools?: AiTools | ((run: AiRun) => AiTools | Promise<AiTools>);
  /** How often the model is asked in one run; the last time without tools. Default 10. */
  readonly maxSteps?: number;
  /** Names of further tools that may run twice for one call: those that `tools` is a function of, or of the AI SDK. */
  readonly repeatableTools?: readonly string[];
  /** `"tell"`: the model is told the thread's state before each step. */
  readonly state?: "tell";
  /** Schema of the answer: RUN_FINISHED has the object as `result`. */
  readonly output?: AiSchema;
  readonly settings?: AiSettings;
}

const MODEL: Check = [
  (given) => ID[0](given) || FUNCTION[0](given) || OBJECT[0](given),
  "a model of the AI SDK, or a function that makes one",
];
const SYSTEM: Check = [(given) => TEXT[0](given) || FUNCTION[0](given), "a string or a function"];
const RECORD: Check = [(given) => FUNCTION[0](given) || OBJECT[0](given), "an object or a function"];
const TELL: Check = [(given) => given === "tell", '"tell"'];

const { agentId, description, debug } = AGENT_NAMES;

export const AI_NAMES: Names<AiAgentOptions> = {
  agentId,
  description,
  debug,
  model: MODEL,
  system: SYSTEM,
  tools: RECORD,
  maxSteps: TIMEOUT,
  repeatableTools: TEXTS,
  state: TELL,
  output: RECORD,
  settings: OBJECT,
};

export const AI_TOOL_NAMES: Names<AiTool> = {
  description: TEXT,
  parameters: RECORD,
  execute: FUNCTION,
  needsApproval: [(given) => typeof given === "boolean" || FUNCTION[0](given), "true, false or a function"],
  repeatable: [(given) => typeof given === "boolean", "true or false"],
};
