import type { AGUIEvent, ContentPart, Interrupt, JsonPatchOperation, ResumeEntry } from "@ag-ui/core";
import { EventType } from "@ag-ui/core";
import { EventSchemas } from "@ag-ui/core/schemas";
import { asSchema, jsonSchema, type FlexibleSchema, type Schema, type Tool as SdkTool, type ToolSet } from "ai";
import { messageOf } from "../run/errors.js";
import { cloneJson, isRecord } from "../run/json.js";
import { kindOf } from "./media.js";
import type { AiSchema, AiTool, AiTools, AiToolRun } from "./options.js";
import { jsonIn } from "./prompt.js";
import type { MadeCall } from "./answer.js";

/** A schema of the AI SDK; a plain JSON Schema becomes one that checks nothing. */
export function schemaOf(schema: AiSchema): Schema {
  const isPlain =
    typeof schema === "object" && !("~standard" in schema) && !("jsonSchema" in schema && "validate" in schema);
  // Told apart by the line above, which the compiler does not follow.
  return isPlain ? jsonSchema(schema as Parameters<typeof jsonSchema>[0]) : asSchema(schema as FlexibleSchema);
}

/** The public type of the SDK's tools names only what tells them apart. */
type KnownTool = AiTool | SdkTool;

const isSdkTool = (tool: KnownTool): tool is SdkTool => "inputSchema" in tool;

/** The tools as the model is told of them. None has an `execute`: calls are executed when they are in the log. */
export function toolSetOf(
  own: AiTools,
  page: readonly { name: string; description: string; parameters?: unknown }[],
): ToolSet {
  const set: ToolSet = {};
  for (const { name, description, parameters } of page) {
    const inputSchema = jsonSchema(isRecord(parameters) ? parameters : { type: "object" });
    // The SDK's type wants an output where there is no execute; it asks for none.
    set[name] = { description, inputSchema } as SdkTool;
  }
  // What runs here takes precedence over what a page offers by the same name.
  for (const [name, tool] of Object.entries(own as Readonly<Record<string, KnownTool>>)) {
    if (isSdkTool(tool)) {
      const { execute: _execute, needsApproval: _needsApproval, toModelOutput: _toModelOutput, ...told } = tool;
      set[name] = told as SdkTool;
    } else {
      const { description, parameters } = tool;
      set[name] = { ...(description !== undefined && { description }), inputSchema: schemaOf(parameters) } as SdkTool;
    }
  }
  return set;
}

/** What becomes of a call. */
export type Fate =
  | { readonly is: "execute"; readonly args: unknown }
  | { readonly is: "answer"; readonly content: string }
  /** Somebody is to approve it. */
  | { readonly is: "ask"; readonly args: unknown }
  /** The page runs it. */
  | { readonly is: "page" };

const failed = (why: unknown): Fate & { is: "answer" } => ({ is: "answer", content: `Error: ${messageOf(why)}` });

/** The decision about a call, among those that the run was given. */
export const decisionOn = (toolCallId: string, resume: readonly ResumeEntry[] | undefined): ResumeEntry | undefined =>
  resume?.find(({ interruptId }) => interruptId === toolCallId || interruptId.endsWith(`/${toolCallId}`));

/** The tools of a run, by which its calls are judged and executed. */
export class ToolBox {
  constructor(
    private readonly own: AiTools,
    private readonly pageTools: ReadonlySet<string>,
    private readonly repeatable: ReadonlySet<string>,
  ) {}

  private tool(name: string): KnownTool | undefined {
    return Object.hasOwn(this.own, name) ? (this.own[name] as KnownTool) : undefined; // see KnownTool
  }

  /** A call that the model has just made. */
  async fateOf(call: MadeCall, run: AiToolRun): Promise<Fate> {
    if (call.invalid !== undefined) return failed(call.invalid);
    const tool = this.tool(call.name);
    if (tool?.execute === undefined) return { is: "page" };
    try {
      const { needsApproval } = tool;
      // Both kinds of tools are given what either knows.
      const needs: unknown =
        typeof needsApproval === "function" ? await needsApproval(call.args as never, run as never) : needsApproval;
      // Whatever else than no: to ask too often does no harm.
      return { is: needs ? "ask" : "execute", args: call.args };
    } catch (error) {
      return failed(error);
    }
  }

  /**
   * A call that an earlier run has left without a result.
   *
   * @param isAttempt the run goes on with one that broke: somebody, or the policy, decided that it may run again
   */
  async fateOfLeft(
    { toolCallId, name, text }: { readonly toolCallId: string; readonly name: string; readonly text: string },
    decision: ResumeEntry | undefined,
    isAttempt: boolean,
    run: AiToolRun,
  ): Promise<Fate> {
    const tool = this.tool(name);
    if (tool?.execute === undefined) {
      // A tool of the agent without `execute` is the page's too.
      const isOfPage = tool !== undefined || this.pageTools.has(name);
      return isOfPage ? { is: "page" } : failed(`There is no tool ${name} any more`);
    }
    const proposed = text.trim() === "" ? {} : jsonIn(text);
    if (decision === undefined) {
      const checked = await this.checked(tool, proposed);
      if ("invalid" in checked) return failed(checked.invalid);
      const fate = await this.fateOf({ toolCallId, name, args: checked.args }, run);
      if (fate.is !== "execute" || isAttempt || this.repeatable.has(name)) return fate;
      return failed("It is not known whether this call was carried out. Check before you repeat it");
    }
    const answer: unknown = decision.payload;
    const isApproved =
      decision.status === "resolved" && (answer === true || (isRecord(answer) && answer["approved"] === true));
    if (!isApproved) {
      const why = isRecord(answer) && typeof answer["reason"] === "string" ? `: ${answer["reason"]}` : "";
      return {
        is: "answer",
        content: `The user ${decision.status === "resolved" ? "denied" : "did not approve"} this call${why}`,
      };
    }
    const checked = await this.checked(
      tool,
      isRecord(answer) && "editedArgs" in answer ? answer["editedArgs"] : proposed,
    );
    return "invalid" in checked ? failed(checked.invalid) : { is: "execute", args: checked.args };
  }

  private async checked(tool: KnownTool, args: unknown): Promise<{ args: unknown } | { invalid: unknown }> {
    if (args === undefined) return { invalid: "The arguments are not complete" };
    const { validate } = schemaOf(isSdkTool(tool) ? (tool.inputSchema as AiSchema) : tool.parameters);
    const result = await validate?.(args);
    if (result === undefined) return { args };
    return result.success ? { args: result.value } : { invalid: result.error };
  }

  /** Errors: what the tool throws. */
  async execute(name: string, args: unknown, run: AiToolRun): Promise<string | ContentPart[]> {
    const tool = this.tool(name)!;
    let output: unknown = await tool.execute!(args as never, run as never);
    if (typeof output === "object" && output !== null && Symbol.asyncIterator in output) {
      // The SDK's tools may tell how far they have got: the last word is the result.
      let last: unknown;
      for await (const told of output as AsyncIterable<unknown>) last = told;
      output = last;
    }
    if (!isSdkTool(tool) || tool.toModelOutput === undefined) return textOf(output);
    return contentOf(await tool.toModelOutput({ toolCallId: run.toolCallId, input: args, output }));
  }
}

const textOf = (output: unknown): string =>
  typeof output === "string" ? output : output === undefined ? "" : (JSON.stringify(output) ?? "");

type ModelOutput = Awaited<ReturnType<NonNullable<SdkTool["toModelOutput"]>>>;

/** What a tool of the SDK tells the model, as AG-UI has it. */
function contentOf(output: ModelOutput): string | ContentPart[] {
  switch (output.type) {
    case "text":
      return output.value;
    case "error-text":
      return `Error: ${output.value}`;
    case "error-json":
      return `Error: ${JSON.stringify(output.value)}`;
    case "json":
      return JSON.stringify(output.value);
    case "execution-denied":
      return `The call was denied${output.reason === undefined ? "" : `: ${output.reason}`}`;
    case "content": {
      const parts = output.value.flatMap((part): ContentPart[] => {
        switch (part.type) {
          case "text":
            return [{ type: "text", text: part.text }];
          case "file-data":
          case "image-data":
            return [mediaPart(part.mediaType, { type: "data", value: part.data, mimeType: part.mediaType })];
          case "file-url":
          case "image-url":
            return [mediaPart("mediaType" in part ? part.mediaType : "image/*", { type: "url", value: part.url })];
          case "file": {
            const { data, mediaType } = part;
            if (data.type === "data" && typeof data.data === "string") {
              return [mediaPart(mediaType, { type: "data", value: data.data, mimeType: mediaType })];
            }
            return data.type === "url"
              ? [mediaPart(mediaType, { type: "url", value: String(data.url), mimeType: mediaType })]
              : [];
          }
          default:
            return [];
        }
      });
      return parts.every((part) => part.type === "text") ? parts.map(({ text }) => text).join("\n") : parts;
    }
  }
}

type Media = Exclude<ContentPart, { type: "text" }>;

const mediaPart = (mediaType: string | undefined, source: Media["source"]): Media => ({
  type: kindOf(mediaType),
  source,
});

/** Asks for the approval of a call, in AG-UI's form. */
export const approvalOf = (runId: string, toolCallId: string, name: string): Interrupt => ({
  id: `${runId}/${toolCallId}`,
  reason: "tool_call",
  message: `Allow ${name}?`,
  toolCallId,
  responseSchema: {
    type: "object",
    properties: {
      approved: { type: "boolean" },
      editedArgs: { type: "object", description: "Replaces the arguments" },
      reason: { type: "string", description: "Told to the model where the call is denied" },
    },
    required: ["approved"],
  },
});

/** The events by which a tool changes the thread's state. Both throw where there is none: it would end the run. */
export const stateEvents = {
  snapshot: (state: unknown): AGUIEvent => stateEvent({ type: EventType.STATE_SNAPSHOT, snapshot: cloneJson(state) }),
  delta: (patch: readonly JsonPatchOperation[]): AGUIEvent =>
    stateEvent({ type: EventType.STATE_DELTA, delta: cloneJson([...patch]) }),
};

function stateEvent(event: AGUIEvent): AGUIEvent {
  const issue = EventSchemas.safeParse(event).error?.issues[0];
  if (issue !== undefined) throw new Error(`The state cannot be changed so: ${issue.path.join(".")}: ${issue.message}`);
  return event;
}
