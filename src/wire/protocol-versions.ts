import { contentHasMedia, contentToText, EventType, PROTOCOL_VERSION } from "@ag-ui/core";
import type { AGUIEventOf, ContentPart, RunAgentInput } from "@ag-ui/core";
import type { BaseEvent, Message } from "@ag-ui/client";
import { isForgetting } from "../run/prelude.js";
import type { Lost } from "./lost.js";

/**
 * The log holds AG-UI 1.0; a reader may use an older version. Clients state theirs in `RunAgentInput.protocolVersion`, a
 * field of 1.0: a client that states none is older. The tests try each shape with client 0.0.59, the last version before
 * 1.0.
 *
 * Not possible by rewriting single events: a MESSAGES_SNAPSHOT that removes such a reader's last activity or reasoning,
 * or that changes the role of an id. 0.0.59 keeps those messages, whatever `authoritativeActivityTypes` says.
 */
const BEFORE_1_0 = /^0(?:\.\d+)*$/;

type Before1 = { readonly [T in EventType]?: (event: AGUIEventOf<T>, lost: Lost) => AGUIEventOf<T> };

/** Rewrites what a reader below 1.0 rejects or misreads, by event type. Other events are unchanged. */
const BEFORE_1: Before1 = {
  // It requires input fields that 1.0 omits when they are empty. The version is not the reader's.
  [EventType.RUN_STARTED]: ({ protocolVersion: _version, ...event }, lost) =>
    event.input === undefined ? event : { ...event, input: inputBefore1(event.input, lost) },

  // Rejected: the outcome "cancelled" (a stop would look like a failure), and unknown fields of an outcome.
  [EventType.RUN_FINISHED]: (event, lost) => {
    const { outcome, ...plain } = event;
    if (outcome?.type === "cancelled") lost("the outcome of a run that was stopped: it looks finished");
    if (outcome?.type === "success" && outcome.pendingToolCallIds !== undefined) lost("outcome.pendingToolCallIds");
    if (outcome?.type === "interrupt")
      return { ...plain, outcome: { type: "interrupt", interrupts: outcome.interrupts } };
    return outcome?.type === "success" ? { ...plain, outcome: { type: "success" } } : plain;
  },

  // Rejected: parts as the content of a tool message.
  [EventType.TOOL_CALL_RESULT]: (event, lost) =>
    typeof event.content === "string" ? event : { ...event, content: textOf(event.content, lost) },

  // Misread: it would keep the placeholder with which others are made to forget messages.
  [EventType.MESSAGES_SNAPSHOT]: (event, lost) => ({
    ...event,
    messages: (isForgetting(event) ? event.messages.slice(0, -1) : event.messages).map((message) =>
      messageBefore1(message, lost),
    ),
  }),

  // Misread: it ignores a state that is null, 0, "" or false, keeps the previous one, and would send that back with its
  // next run. It gets {} instead, the state of a thread without one.
  [EventType.STATE_SNAPSHOT]: (event) => (event.snapshot ? event : { ...event, snapshot: {} }),
  [EventType.STATE_DELTA]: (event) => ({
    ...event,
    delta: event.delta.map((operation) => {
      if (operation.path !== "" || operation.op === "move" || operation.op === "copy") return operation;
      if (operation.op === "remove") return { op: "replace", path: "", value: {} };
      return operation.value ? operation : { ...operation, value: {} };
    }),
  }),
};

type Rewrite = (event: BaseEvent, lost: Lost) => BaseEvent;

// Each function is stored under the type of its events.
const TABLE: ReadonlyMap<string, Rewrite> = new Map(Object.entries(BEFORE_1) as [string, Rewrite][]);

/**
 * Returns how events are rewritten for a reader.
 *
 * @param version the reader's version: none, or a number below 1, is a version before 1.0. As AG-UI requires, a version
 *   that cannot be interpreted is treated as a newer one
 * @returns maps an event of the log to a form that the reader accepts, without changing its argument; undefined for a
 *   reader of 1.0 or newer, which accepts every event as it is
 */
export function eventMapper(
  version: string | undefined,
  lost: Lost = nobody,
): ((event: BaseEvent) => BaseEvent) | undefined {
  if (isFrom1(version)) return undefined;
  return (event) => TABLE.get(event.type)?.(event, lost) ?? event;
}

/** Maps an event to the form that clients before 1.0 read. */
export function forOlder(lost: Lost): (event: BaseEvent) => BaseEvent {
  const toOlder = eventMapper(undefined, lost);
  return (event) => toOlder?.(event) ?? event;
}

/**
 * Returns how messages are rewritten for a reader: the form that it has after {@link eventMapper} and therefore sends
 * back. Rewrite the log's messages in the same way before comparing; otherwise each part that the reader cannot hold
 * looks like an edit.
 *
 * @returns undefined for a reader of 1.0 or newer
 */
export function messageMapper(version: string | undefined): ((message: Message) => Message) | undefined {
  return isFrom1(version) ? undefined : (message) => messageBefore1(message, nobody);
}

/**
 * Converts a RunAgentInput of a client below 1.0 to the shapes of 1.0: optional fields that are null become absent, and
 * `binary` parts become the media parts that replaced them. Nothing is validated: unknown values stay, for the schema to
 * reject. Input of 1.0 is returned equal.
 */
export function upgradeInput(body: unknown): unknown {
  if (!isObject(body)) return body;
  let input = withoutNull(body, "forwardedProps");
  input = withEach(input, "tools", (tool) => withoutNull(tool, "parameters"));
  input = withEach(input, "resume", (entry) => withoutNull(entry, "payload"));
  return withEach(input, "messages", (message) =>
    withEach(message, "content", (part) =>
      part["type"] === "binary" ? mediaPart(part) : withoutNull(part, "metadata"),
    ),
  );
}

const nobody = (): void => undefined;

const isFrom1 = (version: string | undefined): boolean => version !== undefined && !BEFORE_1_0.test(version);

/** Whether this library does not fully support the version: a newer one, or one that cannot be interpreted. */
export function isNewer(version: string | undefined): boolean {
  if (!isFrom1(version)) return false;
  const [, major, minor] = /^([1-9]\d*)\.(\d+)$/.exec(version!) ?? [];
  const [ownMajor, ownMinor] = PROTOCOL_VERSION.split(".").map(Number);
  return major === undefined || Number(major) > ownMajor! || (Number(major) === ownMajor && Number(minor) > ownMinor!);
}

function inputBefore1({ protocolVersion: _version, ...input }: RunAgentInput, lost: Lost): RunAgentInput {
  return {
    ...input,
    messages: input.messages.map((message) => messageBefore1(message, lost)),
    tools: input.tools ?? [],
    context: input.context ?? [],
    forwardedProps: input.forwardedProps ?? {},
    state: input.state ?? {},
  };
}

function messageBefore1(message: Message, lost: Lost): Message {
  if (!Array.isArray(message.content)) return message;
  // Only users and tools have parts.
  if (message.role === "tool") return { ...message, content: textOf(message.content, lost) };
  if (message.role !== "user") return message;
  return { ...message, content: message.content.flatMap((part) => partBefore1(part, lost)) };
}

function textOf(content: ContentPart[], lost: Lost): string {
  if (contentHasMedia(content)) lost("media in the result of a tool");
  return contentToText(content);
}

/**
 * Before 1.0 parts have no ids, and a provider's file is a `binary` part with an id. Without a MIME type it is dropped.
 */
function partBefore1(part: ContentPart, lost: Lost): ContentPart[] {
  // A `binary` part that such a reader sent; 1.0 has no such type.
  if (part.type !== "text" && !("source" in part)) return [part];
  const { id: _id, ...known } = part;
  if (known.type === "text" || known.source.type !== "file") return [known];
  const { mimeType, value } = known.source;
  if (mimeType === undefined) {
    lost("a provider's file without mimeType");
    return [];
  }
  const filename: unknown = (known.metadata as { filename?: unknown } | undefined)?.filename;
  const binary = { type: "binary", mimeType, id: value, ...(typeof filename === "string" && { filename }) };
  return [binary as unknown as ContentPart];
}

type Fields = Readonly<Record<string, unknown>>;

const isObject = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value);

function withoutNull(fields: Fields, field: string): Fields {
  if (fields[field] !== null) return fields;
  const { [field]: _null, ...rest } = fields;
  return rest;
}

/** Rewrites the objects of a list; anything else stays. */
function withEach(fields: Fields, field: string, rewrite: (entry: Fields) => Fields): Fields {
  const list = fields[field];
  if (!Array.isArray(list)) return fields;
  // Such a list is rejected later, and may be long: do not copy it.
  if (list.length === 0 || !isObject(list[0])) return fields;
  return { ...fields, [field]: list.map((entry: unknown) => (isObject(entry) ? rewrite(entry) : entry)) };
}

/** Converts a `binary` part to the media part of its MIME type; one without data, URL or file id is unchanged. */
function mediaPart(part: Fields): Fields {
  const { mimeType, data, url, id, filename } = part;
  if (typeof mimeType !== "string") return part;
  const source = [
    { type: "data", value: data, mimeType },
    { type: "url", value: url, mimeType },
    { type: "file", value: id, mimeType },
  ].find(({ value }) => typeof value === "string" && value !== "");
  if (source === undefined) return part;
  const kind = /^(image|audio|video)\//.exec(mimeType)?.[1] ?? "document";
  return { type: kind, source, ...(typeof filename === "string" && { metadata: { filename } }) };
}
