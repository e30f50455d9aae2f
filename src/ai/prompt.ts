import type { ContentPart, Context, Message, ToolCall, ToolMessage } from "@ag-ui/core";
import { contentToText } from "@ag-ui/core";
import type { AssistantModelMessage, FilePart, JSONValue, ModelMessage, TextPart, ToolModelMessage } from "ai";
import { messageOf } from "../run/errors.js";
import { isRecord } from "../run/json.js";
import { parseUrl } from "../wire/parse-url.js";
import { base64In, leftOut } from "./media.js";

type AssistantParts = Exclude<AssistantModelMessage["content"], string>;
type AssistantPart = AssistantParts[number];
type ToolResult = Extract<ToolModelMessage["content"][number], { type: "tool-result" }>;
type ProviderOptions = NonNullable<FilePart["providerOptions"]>;

/** The activity that a file of a model becomes: AG-UI's messages of assistants have text only. */
export const FILE_ACTIVITY = "file";
/** In a tool call's metadata: the model's server ran it itself. In that of a result: it is the server's, and no error. */
export const PROVIDER_EXECUTED = "providerExecuted";

const NO_RESULT = "This call has no result: it was not carried out, or its result is lost.";

/**
 * What a provider wants back unchanged (signatures, ids of its own) stands in `encryptedValue`.
 *
 * @returns nothing for a value of another agent
 */
function optionsIn(encryptedValue: string | undefined): { readonly providerOptions?: ProviderOptions } {
  if (encryptedValue === undefined || !encryptedValue.startsWith("{")) return {};
  const value = jsonIn(encryptedValue);
  // Each provider checks its own part of it.
  return isRecord(value) && Object.values(value).every(isRecord) ? { providerOptions: value as ProviderOptions } : {};
}

/** Undefined where the text is no JSON. */
export const jsonIn = (text: string): unknown => tried(() => JSON.parse(text) as unknown);

/** Undefined where it throws. */
function tried<T>(make: () => T): T | undefined {
  try {
    return make();
  } catch {
    return undefined;
  }
}

const MEDIA = { image: "image/*", audio: "audio/*", video: "video/*", document: "application/octet-stream" } as const;

type Media = Exclude<ContentPart, { type: "text" }>;
/** Bytes, a URL or a provider's id. */
type FileData = Extract<FilePart["data"], { type: string }>;
type FileOrText = (Omit<FilePart, "data"> & { readonly data: FileData }) | TextPart;

/** URLs whose files could not be had, and media types that the provider does not take. */
export type Lost = ReadonlySet<string>;

/** A part of a message as the SDK's file; where it cannot be read, a note. */
function filePart({ type, source }: Media, lost: Lost): FileOrText {
  const { value, mimeType } = source;
  // A data URL often stands where its data belongs.
  const head = DATA_URL.exec(value);
  const mediaType = mimeType || head?.[1] || MEDIA[type];
  const data =
    source.type === "file"
      ? ({ type: "reference", reference: { [source.provider ?? "default"]: value } } as const)
      : source.type === "url" || head !== null
        ? dataAt(value, lost)
        : bytesIn(value);
  return data === undefined || lost.has(mediaType)
    ? { type: "text", text: leftOut(type) }
    : { type: "file", mediaType, data };
}

/** Its media type, and how its data is written. */
const DATA_URL = /^data:([^;,]*)[^,]*?(;base64)?,/i;

/** Undefined where it is no URL, a data URL without data, or lost. */
function dataAt(url: string, lost: Lost): FileData | undefined {
  if (!/^data:/i.test(url)) {
    const parsed = parseUrl(url, globalThis.location?.href);
    return parsed === undefined || lost.has(parsed.href) ? undefined : { type: "url", url: parsed };
  }
  const head = DATA_URL.exec(url);
  if (head === null) return undefined;
  const body = url.slice(head[0].length);
  if (head[2] !== undefined) return bytesIn(body);
  const text = tried(() => decodeURIComponent(body));
  return text === undefined ? undefined : { type: "text", text };
}

/** Undefined where it is no base64 (of either alphabet), or empty. */
function bytesIn(base64: string): FileData | undefined {
  const data = base64In(base64);
  return data === undefined ? undefined : { type: "data", data };
}

/** Without empty texts, which providers refuse. */
const partsOf = (content: readonly ContentPart[], lost: Lost): FileOrText[] =>
  content.flatMap((part): FileOrText[] => {
    if (part.type !== "text") return [filePart(part, lost)];
    return part.text === "" ? [] : [{ type: "text", text: part.text }];
  });

function outputOf({ content, error }: Pick<ToolMessage, "content" | "error">, lost: Lost): ToolResult["output"] {
  if (typeof content !== "string") {
    if (content.every(({ type }) => type === "text")) return { type: "text", value: contentToText([...content]) };
    return { type: "content", value: partsOf(content, lost) };
  }
  return error === undefined ? { type: "text", value: content } : { type: "error-text", value: content };
}

/**
 * What a tool of the model's server gave. An error, and what was made up where the run was stopped or broke, is none of its
 * results, whose shape the provider checks.
 */
function serverOutputOf({ content, metadata }: Pick<ToolMessage, "content" | "metadata">): ToolResult["output"] {
  const text = contentToText(content);
  const value = jsonIn(text);
  // JSON, as it was parsed from it.
  if (metadata?.[PROVIDER_EXECUTED] === true) return { type: "json", value: (value ?? null) as JSONValue };
  const error = isRecord(value) ? (value as Readonly<Record<string, JSONValue>>) : { message: text };
  // The code that Anthropic's tools have for it.
  return { type: "error-json", value: { errorCode: "unavailable", ...error } };
}

/** Builds the SDK's messages: an assistant's turn is one message with parts, results follow its calls. */
class Prompt {
  readonly messages: ModelMessage[] = [];
  private turn: AssistantPart[] = [];
  private calls: ToolCall[] = [];
  private readonly results: ReadonlyMap<string, ToolMessage>;

  constructor(
    messages: readonly Message[],
    private readonly lost: Lost,
  ) {
    this.results = new Map(
      messages.flatMap((message) => (message.role === "tool" ? [[message.toolCallId, message] as const] : [])),
    );
    for (const message of messages) this.add(message);
    this.endTurn(true);
  }

  private add(message: Message): void {
    switch (message.role) {
      case "user": {
        this.endTurn();
        const content = typeof message.content === "string" ? message.content : partsOf(message.content, this.lost);
        if (content.length > 0) this.messages.push({ role: "user", content });
        return;
      }
      case "system":
      case "developer":
        this.endTurn();
        if (message.content !== "") this.messages.push({ role: "system", content: message.content });
        return;
      case "reasoning":
        this.speakOn();
        this.turn.push({ type: "reasoning", text: message.content, ...optionsIn(message.encryptedValue) });
        return;
      case "assistant":
        this.speakOn();
        if (message.content)
          this.turn.push({ type: "text", text: message.content, ...optionsIn(message.encryptedValue) });
        for (const call of message.toolCalls ?? []) this.call(call);
        return;
      case "activity":
        if (message.activityType === FILE_ACTIVITY) this.file(message.content);
        return;
      case "tool":
        // Taken with their calls.
        return;
    }
  }

  /** What the model says after its calls were answered is its next turn. */
  private speakOn(): void {
    if (this.calls.length > 0) this.endTurn();
  }

  private call(call: ToolCall): void {
    const {
      id,
      function: { name, arguments: args },
      encryptedValue,
      metadata,
    } = call;
    const parsed = jsonIn(args);
    const part = { toolCallId: id, toolName: name, ...optionsIn(encryptedValue) };
    // Providers take objects only; what the model wrote otherwise was answered with an error.
    const input = isRecord(parsed) ? parsed : {};
    if (metadata?.[PROVIDER_EXECUTED] === true) {
      this.turn.push({ type: "tool-call", ...part, input, providerExecuted: true });
      const result = this.results.get(id);
      if (result !== undefined) this.turn.push({ type: "tool-result", ...part, output: serverOutputOf(result) });
      return;
    }
    this.turn.push({ type: "tool-call", ...part, input });
    this.calls.push(call);
  }

  private file(content: Readonly<Record<string, unknown>>): void {
    const { mediaType, data, url } = content;
    if (typeof mediaType !== "string") return;
    const found =
      typeof data === "string" ? bytesIn(data) : typeof url === "string" ? dataAt(url, this.lost) : undefined;
    if (found === undefined || this.lost.has(mediaType)) return;
    this.speakOn();
    this.turn.push({ type: "file", mediaType, data: found });
  }

  /** A part of a turn, with an error behind a call of the server's that has no result: providers refuse it without one. */
  private settled(part: AssistantPart): AssistantPart[] {
    if (part.type !== "tool-call" || part.providerExecuted !== true || this.results.has(part.toolCallId)) return [part];
    const { toolCallId, toolName } = part;
    return [part, { type: "tool-result", toolCallId, toolName, output: serverOutputOf({ content: NO_RESULT }) }];
  }

  /** @param isLast nothing follows it */
  private endTurn(isLast = false): void {
    const { calls } = this;
    // A server that waits for results of others gives its own with the next answer.
    const turn = isLast && calls.length > 0 ? this.turn : this.turn.flatMap((part) => this.settled(part));
    this.turn = [];
    this.calls = [];
    // Thoughts that led to nothing, as of a run that was stopped: servers refuse a message of them alone.
    if (turn.every(({ type }) => type === "reasoning")) return;
    this.messages.push({ role: "assistant", content: turn });
    if (calls.length === 0) return;
    // Providers refuse a call without a result.
    const content = calls.map(({ id, function: { name } }): ToolResult => {
      const output = outputOf(this.results.get(id) ?? { content: NO_RESULT, error: "lost" }, this.lost);
      return { type: "tool-result", toolCallId: id, toolName: name, output };
    });
    this.messages.push({ role: "tool", content });
  }
}

/** A thread's messages as the AI SDK takes them. Activities of others are left out, calls without a result get one. */
export const promptOf = (messages: readonly Message[], lost: Lost = new Set()): ModelMessage[] =>
  new Prompt(messages, lost).messages;

/** Media types of files that a provider has refused: its error names one, or none. */
export function refusedTypes(error: unknown, messages: readonly ModelMessage[]): readonly string[] {
  if ((error as Partial<Error> | null)?.name !== "AI_UnsupportedFunctionalityError") return [];
  const types = messages.flatMap(({ content }) => (typeof content === "string" ? [] : content.flatMap(typesIn)));
  const named = types.filter((type) => messageOf(error).includes(type));
  return named.length > 0 ? named : types;
}

function typesIn(part: Exclude<ModelMessage["content"], string>[number]): string[] {
  if (part.type === "file") return [part.mediaType];
  if (part.type !== "tool-result" || part.output.type !== "content") return [];
  return part.output.value.flatMap((value) => (value.type === "file" ? [value.mediaType] : []));
}

/** The instructions: what the agent says, then what the page adds, then the state. */
export function instructionsOf(
  system: string | undefined,
  context: readonly Context[],
  state: { readonly told: unknown } | undefined,
): string | undefined {
  const sections = [
    system,
    ...context.map(({ description, value }) => `${description}:\n${value}`),
    state && `The current state, as JSON:\n${JSON.stringify(state.told)}`,
  ];
  const text = sections.filter((section) => section !== undefined && section !== "").join("\n\n");
  return text === "" ? undefined : text;
}
