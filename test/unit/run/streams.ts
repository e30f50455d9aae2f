import { EventType } from "@ag-ui/core";
import type { BaseEvent, Interrupt, Message, State } from "@ag-ui/client";
import fc from "fast-check";

/** A run's events without its terminal event, and what the thread held before. */
export interface Stream {
  readonly base: { readonly messages: Message[]; readonly state: State; readonly interrupts: Interrupt[] };
  readonly events: BaseEvent[];
}

export const THREAD_ID = "t";
export const RUN_ID = "run";

/** Whoever's name ends in s belongs to subagent s1, so attribution never contradicts itself. */
const ownerOf = (id: string): string | undefined => (id.endsWith("s") ? "s1" : undefined);
const tag = (id: string): { subagentRunId?: string } => {
  const owner = ownerOf(id);
  return owner === undefined ? {} : { subagentRunId: owner };
};

const MESSAGES = ["m1", "m2", "m3s", "r1", "r2s", "a1", "a2s", "b1", "b2s", "b3", "b4", "b5"];
const CALLS = ["c1", "c2", "c3s", "c4s"];
const TEXTS = ["", "a", "héllo ", "\ud83d", "\ude00", "\n", '{"x":', "1}"];
const KEYS = ["k1", "k2"];
const PATHS = ["", "/list", "/list/-", "/list/0", "/list/3", "/count", "/a", "/a/b", "/a/b/c", "/no/way", "/a~1b"];
const VALUES: readonly unknown[] = [0, null, "v", [1, 2], { b: { c: 1 } }, {}];
/** A copy each time: the reference writes to the values of patches. */
const value = (n: number): unknown => structuredClone(pick(VALUES, n));

interface Choice {
  readonly kind: number;
  readonly id: number;
  readonly other: number;
  readonly text: number;
  readonly flag: boolean;
  readonly metadata: number;
}

const choice: fc.Arbitrary<Choice> = fc.record({
  kind: fc.nat(1_000),
  id: fc.nat(1_000),
  other: fc.nat(1_000),
  text: fc.nat(1_000),
  flag: fc.boolean(),
  metadata: fc.nat(11),
});

const pick = <T>(from: readonly T[], n: number): T => from[n % from.length]!;

const BASE: readonly Message[] = [
  { id: "b1", role: "user", content: "hello" },
  { id: "b2s", role: "assistant", subagentRunId: "s1", content: "hi", toolCalls: [call("c4s", "sum", "{}")] },
  { id: "b3", role: "assistant", toolCalls: [call("c1", "pick", "{}")], metadata: { k1: "base" } },
  { id: "b4", role: "reasoning", content: "hm" },
  { id: "b5", role: "activity", activityType: "plan", content: { list: [1], a: {} } },
  { id: "b6", role: "user", content: [{ type: "text", text: "parts" }] },
];

function call(id: string, name: string, args: string) {
  return { id, type: "function" as const, function: { name, arguments: args } };
}

function someMessage(id: string, c: Choice): Message {
  const content = pick(TEXTS, c.text);
  const metadata = c.metadata === 0 ? { metadata: { k1: c.id } } : {};
  const common = { id, ...tag(id), ...metadata };
  switch (c.other % 5) {
    case 0:
      return { ...common, role: "user", content };
    case 1:
      return { ...common, role: "reasoning", content };
    case 2:
      return { ...common, role: "activity", activityType: pick(["plan", "search"], c.text), content: { list: [c.id] } };
    default: {
      const own = CALLS.filter((callId) => ownerOf(callId) === ownerOf(id));
      const toolCalls = c.flag ? { toolCalls: [call(pick(own, c.id), "snap", content)] } : {};
      return { ...common, role: "assistant", content, ...toolCalls };
    }
  }
}

/** Turns choices into events that are valid in this order; a choice that is not possible adds none. */
class Writer {
  readonly events: BaseEvent[] = [];
  readonly #open = new Set<string>();
  readonly #subagents: string[] = [];
  #results = 0;

  emit(type: EventType, c: Choice, fields: Record<string, unknown>): void {
    const metadata =
      c.metadata > 3
        ? {}
        : { metadata: { [pick(KEYS, c.metadata)]: c.text, ...(c.metadata === 3 && { deep: [c.id] }) } };
    const timestamp = c.metadata === 4 ? { timestamp: 1_000 + (c.id % 2) } : {};
    this.events.push({ type, ...fields, ...timestamp, ...metadata });
  }

  /** Starts, goes on with or ends something with an id. */
  #part(
    name: string,
    id: string,
    c: Choice,
    part: number,
    types: readonly EventType[],
    fields: Record<string, unknown>,
  ): void {
    const key = `${name} ${id}`;
    const idField = types[0] === EventType.TOOL_CALL_START ? { toolCallId: id } : { messageId: id };
    if (!this.#open.has(key)) {
      if (part > 2) return;
      this.#open.add(key);
      return this.emit(types[0]!, c, { ...idField, ...tag(id), ...fields });
    }
    const attributed = c.flag ? tag(id) : {};
    if (part < 4 && types.length === 3) {
      return this.emit(types[1]!, c, { ...idField, delta: pick(TEXTS, c.text), ...attributed });
    }
    this.#open.delete(key);
    this.emit(types[types.length - 1]!, c, { ...idField, ...attributed });
  }

  add(c: Choice): void {
    const id = pick(MESSAGES, c.id);
    const part = c.other % 6;
    switch (c.kind % 17) {
      case 0:
      case 1:
      case 2: {
        const role = pick([undefined, "assistant", "user", "developer"] as const, c.text);
        const fields = { ...(role && { role }), ...(c.text % 3 === 0 && { name: "n" }) };
        const types = [EventType.TEXT_MESSAGE_START, EventType.TEXT_MESSAGE_CONTENT, EventType.TEXT_MESSAGE_END];
        return this.#part("text", id, c, part, types, fields);
      }
      case 3:
      case 4:
      case 5: {
        const callId = pick(CALLS, c.id);
        const parents = MESSAGES.filter((parent) => ownerOf(parent) === ownerOf(callId));
        const fields = {
          toolCallName: pick(["sum", "pick", "show"], c.text),
          ...(c.flag && { parentMessageId: pick(parents, c.text) }),
        };
        const types = [EventType.TOOL_CALL_START, EventType.TOOL_CALL_ARGS, EventType.TOOL_CALL_END];
        return this.#part("call", callId, c, part, types, fields);
      }
      case 6: {
        const content = c.flag ? pick(TEXTS, c.text) : [{ type: "text", text: "part" }];
        const fields = { messageId: `result${this.#results++}`, toolCallId: pick([...CALLS, "c9"], c.id), content };
        return this.emit(EventType.TOOL_CALL_RESULT, c, { ...fields, ...(c.text % 2 === 0 && { role: "tool" }) });
      }
      case 7:
        return this.#part("span", id, c, part, [EventType.REASONING_START, EventType.REASONING_END], {});
      case 8: {
        const types = [
          EventType.REASONING_MESSAGE_START,
          EventType.REASONING_MESSAGE_CONTENT,
          EventType.REASONING_MESSAGE_END,
        ];
        return this.#part("reasoning", id, c, part, types, { role: "reasoning" });
      }
      case 9: {
        const [subtype, entityId] = c.flag ? ["tool-call", pick(CALLS, c.other)] : ["message", id];
        return this.emit(EventType.REASONING_ENCRYPTED_VALUE, c, {
          subtype,
          entityId,
          encryptedValue: pick(TEXTS, c.text),
        });
      }
      case 10:
        if (part > 0) return this.emit(EventType.STATE_DELTA, c, { delta: this.#patch(c) });
        return this.emit(EventType.STATE_SNAPSHOT, c, { snapshot: { list: [1, c.id], a: value(c.text) } });
      case 11:
        return this.#messagesSnapshot(c);
      case 12: {
        const fields = { messageId: id, activityType: pick(["plan", "search"], c.text), ...tag(id) };
        if (part > 2) return this.emit(EventType.ACTIVITY_DELTA, c, { ...fields, patch: this.#patch(c) });
        const content = { list: [c.id], a: { b: 1 } };
        return this.emit(EventType.ACTIVITY_SNAPSHOT, c, {
          ...fields,
          content,
          ...(part < 2 && { replace: part === 0 }),
        });
      }
      case 13:
        if (c.flag) return this.emit(EventType.CUSTOM, c, { name: "n", value: c.id });
        return this.emit(EventType.RAW, c, { event: { n: c.id }, source: "test" });
      case 14: {
        const fields = {
          stepName: pick(["p1", "p2"], c.id),
          ...pick([{}, { subagentRunId: "s1" }, { subagentRunId: "" }], c.text),
        };
        const key = `step ${JSON.stringify(fields)}`;
        const started = this.#open.delete(key);
        if (!started) this.#open.add(key);
        return this.emit(started ? EventType.STEP_FINISHED : EventType.STEP_STARTED, c, fields);
      }
      case 15:
        return this.#subagent(c);
      default:
        return;
    }
  }

  #patch(c: Choice): unknown[] {
    return Array.from({ length: 1 + (c.id % 3) }, (_, n) => {
      const path = pick(PATHS, c.other + 5 * n);
      const given = value(c.text + n);
      const from = pick(PATHS.slice(1), c.text + 3 * n);
      // A root that moves or is removed is no state that any agent means.
      const op =
        path === "" ? "replace" : pick(["add", "add", "replace", "remove", "test", "copy", "move"], c.kind + n);
      if (path === "") return { op, path, value: { list: [], a: given } };
      return op === "remove"
        ? { op, path }
        : op === "copy" || op === "move"
          ? { op, from, path }
          : { op, path, value: given };
    });
  }

  #messagesSnapshot(c: Choice): void {
    const ids = new Set(
      Array.from({ length: c.other % 7 }, (_, n) => pick([...MESSAGES, "b6"], c.id + n * (1 + (c.text % 3)))),
    );
    const messages = [...ids].map((id, n) =>
      someMessage(id, { ...c, other: c.other + n, flag: (c.text + n) % 2 === 0 }),
    );
    const types = pick([undefined, undefined, null, [], ["plan"], "wrong"], c.text);
    const scope = types === undefined ? {} : { metadata: { "@ag-ui/client": { authoritativeActivityTypes: types } } };
    this.events.push({ type: EventType.MESSAGES_SNAPSHOT, messages, ...scope });
  }

  #subagent(c: Choice): void {
    const id = pick(["s1", "s2", "s3"], c.id);
    const key = `subagent ${id}`;
    if (this.#open.delete(key)) {
      if (c.flag) return this.emit(EventType.SUBAGENT_FINISHED, c, { subagentRunId: id });
      return this.emit(EventType.SUBAGENT_ERROR, c, { subagentRunId: id, message: "no" });
    }
    if (this.#subagents.includes(id)) return;
    const parent = c.flag && this.#subagents.length > 0 ? { parentSubagentRunId: pick(this.#subagents, c.other) } : {};
    this.#open.add(key);
    this.#subagents.push(id);
    this.emit(EventType.SUBAGENT_STARTED, c, { subagentRunId: id, name: "sub", ...parent });
  }
}

/** Streams that `verifyEvents` accepts, of all event types but chunks; ids collide on purpose. */
export const streams = (maxLength = 40): fc.Arbitrary<Stream> =>
  fc
    .record({
      base: fc.subarray(BASE.map((_, n) => n)),
      said: fc.option(fc.nat(3), { nil: undefined }),
      choices: fc.array(choice, { maxLength, size: "max" }),
    })
    .map(({ base, said, choices }) => {
      const writer = new Writer();
      const messages: Message[] = [
        { id: "u1", role: "user", content: "go" },
        { id: "b1", role: "user", content: "edited" },
        { id: "answer", role: "tool", toolCallId: "c1", content: "ok" },
      ];
      const input = { threadId: THREAD_ID, runId: RUN_ID, messages: messages.slice(0, said), tools: [], context: [] };
      writer.events.push({
        type: EventType.RUN_STARTED,
        threadId: THREAD_ID,
        runId: RUN_ID,
        ...(said !== undefined && { input }),
      });
      for (const c of choices) writer.add(c);
      return {
        base: {
          messages: base.map((n) => structuredClone(BASE[n]!)),
          state: { list: [1], count: 0, a: { b: { c: 1 } } },
          interrupts: [{ id: "i1", reason: "old" }],
        },
        events: writer.events,
      };
    });

/** Those of them that have an event of this type. Throws where there is none among very many. */
export function streamsWith(type: EventType): fc.Arbitrary<Stream> {
  let without = 0;
  return streams().filter(({ events }) => {
    const found = events.some((event) => event.type === type);
    without = found ? 0 : without + 1;
    // The rarest type is in one of some hundred streams.
    if (without > 50_000) throw new Error(`no stream has ${type}`);
    return found;
  });
}

/** Event types that streams have. */
export const STREAMED_TYPES: readonly EventType[] = Object.values(EventType).filter(
  (type) => !type.endsWith("_CHUNK") && type !== EventType.RUN_FINISHED && type !== EventType.RUN_ERROR,
);
