import { AbstractAgent, EventType, type AgentSubscriber, type BaseEvent, type Message } from "@ag-ui/client";
import fc from "fast-check";
import { defer, from, type Observable } from "rxjs";
import type { HostLink } from "../../../src/client/host-link.js";
import { LocalAgent } from "../../../src/client/local-agent.js";
import { ChunkBuilder, unpackEntry } from "../../../src/run/pack.js";
import type { PackedEntry } from "../../../src/run/types.js";
import type { Stream } from "../run/streams.js";

type Content = Pick<Stream["base"], "messages" | "state">;

export const packed = (events: readonly BaseEvent[]): readonly PackedEntry[] => {
  const builder = new ChunkBuilder({ threadId: "t", runIndex: 0, epoch: 1 });
  for (const event of events) builder.add(event, 0);
  return builder.take()?.entries ?? [];
};

const configOf = ({ messages, state }: Content) => ({
  agentId: "a",
  threadId: "t",
  initialMessages: structuredClone(messages),
  initialState: structuredClone(state) as unknown,
});

/** `@ag-ui/client` as it is, given each event. */
export class Reference extends AbstractAgent {
  finalized: Promise<void> | undefined;

  constructor(
    base: Content,
    private readonly events: readonly BaseEvent[],
  ) {
    super(configOf(base));
  }

  override run(): Observable<BaseEvent> {
    // The default stage writes to what it is given.
    return from(structuredClone(this.events) as BaseEvent[]);
  }

  protected override onFinalize(...args: Parameters<AbstractAgent["onFinalize"]>): Promise<void> {
    return (this.finalized = super.onFinalize(...args));
  }
}

/** A LocalAgent whose run comes from the test, as it would come from a host. */
export class Ours extends LocalAgent {
  declare finalized: Promise<void> | undefined;

  constructor(
    base: Content,
    private readonly entries: readonly PackedEntry[],
  ) {
    super({} as HostLink, configOf(base));
  }

  override run(): Observable<BaseEvent> {
    return defer(() => {
      this.entries.forEach((entry) => this["joined"].note(entry));
      if (this["hasMiddlewares"]) return from(this.entries.flatMap(unpackEntry));
      return from(this.entries.map(({ event }) => event)).pipe(this["joined"].before());
    });
  }

  protected override onFinalize(...args: Parameters<AbstractAgent["onFinalize"]>): Promise<void> {
    return (this.finalized = super.onFinalize(...args));
  }
}

export interface Outcome {
  readonly log: readonly unknown[];
  readonly end: unknown;
}

/** Runs an agent with subscribers that note what they are told in one log. */
export async function outcomeOf(
  agent: Reference | Ours,
  subscribers: (log: unknown[]) => readonly AgentSubscriber[],
): Promise<Outcome> {
  const log: unknown[] = [];
  const [onCall, ...others] = subscribers(log);
  for (const other of others) agent.subscribe(other);
  const run = await agent.runAgent({ runId: "run" }, onCall).catch((error: unknown) => String(error));
  await agent.finalized;
  const { messages, state, pendingInterrupts, isRunning } = agent;
  return { log, end: structuredClone({ run, messages, state, pendingInterrupts, isRunning }) };
}

/** The hook of a type of event. */
export const hookOfType = (type: EventType): string =>
  `on${type.toLowerCase().replace(/(^|_)(.)/g, (_, __, letter: string) => letter.toUpperCase())}Event`;

export const EVENT_HOOKS = Object.values(EventType)
  .filter((type) => !type.endsWith("_CHUNK"))
  .map(hookOfType);

const OTHER_HOOKS = ["onRunInitialized", "onRunFinalized", "onRunFailed", "onNewMessage", "onNewToolCall"];
const CHANGES = ["onMessagesChanged", "onStateChanged"];

const PATCH_HOOK = "onActivityDeltaEvent";

/** What a hook does; `calm` ones leave everything as it is. */
const ACTIONS = ["calm", "calm", "calm", "wait", "stop", "add", "edit", "drop", "state", "go on", "throw"] as const;
type Action = (typeof ACTIONS)[number] | "fail";

export interface Behaviour {
  readonly hooks: readonly string[];
  readonly actions: readonly Action[];
}

export const behaviours: fc.Arbitrary<Behaviour[]> = fc.array(
  fc
    .record({
      isToldAll: fc.nat(5),
      hooks: fc.subarray(EVENT_HOOKS, { maxLength: 10 }),
      others: fc.subarray(OTHER_HOOKS),
      actions: fc.array(fc.constantFrom(...ACTIONS), { minLength: 1, maxLength: 20 }),
    })
    .map(({ isToldAll, hooks, others, actions }) => ({
      hooks: [...(isToldAll === 0 ? ["onEvent"] : []), ...hooks, ...others],
      actions,
    })),
  { maxLength: 3 },
);

const added = (n: number): Message => ({ id: `added${n}`, role: "user", content: "more" });

const edited = (message: Message): Message =>
  typeof message.content === "string" ? ({ ...message, content: `${message.content}!` } as Message) : { ...message };

/** Subscribers that behave so, and note every call with all that they are given. */
export function subscribersOf(all: readonly Behaviour[]): (log: unknown[]) => AgentSubscriber[] {
  return (log) =>
    all.map(({ hooks, actions }, who) => {
      let calls = 0;
      const hook = (name: string) => (given: Record<string, unknown>) => {
        const { agent, input, ...told } = given;
        const { messages, state } = agent as AbstractAgent;
        const runId = (input as { runId?: string } | undefined)?.runId;
        log.push(structuredClone({ who, name, runId, told, messages, state }));
        // What these return is no mutation.
        if (CHANGES.includes(name) || name.startsWith("onNew")) return undefined;
        const action = actions[calls++ % actions.length]!;
        return acted(action, name, given["messages"] as Message[], calls);
      };
      return Object.fromEntries([...hooks, ...CHANGES].map((name) => [name, hook(name)]));
    });
}

/** An object: of a patch that adds a field to a number, the default stage tells a change that it does not make. */
const stateOf = (n: number): object => ({ state: { n } });

function acted(action: Action, name: string, messages: readonly Message[], n: number): unknown {
  switch (action) {
    case "wait":
      return Promise.resolve().then(() => undefined);
    case "stop":
      return { stopPropagation: true };
    case "go on":
      return { stopPropagation: false };
    case "add":
      // The default stage loses the metadata of a patch that is refused, where the hook returns messages.
      return name === PATCH_HOOK ? stateOf(n) : { messages: [...messages, added(n)] };
    case "edit":
      // The default stage puts an activity to the place that it had in the messages before.
      return name.startsWith("onActivity") ? stateOf(n) : Promise.resolve({ messages: messages.map(edited) });
    case "drop":
      if (name === PATCH_HOOK) return stateOf(n);
      return name.startsWith("onActivity") ? { messages } : { messages: messages.slice(1), state: { dropped: n } };
    case "state":
      return { state: n % 3 === 0 ? null : { list: [n], count: 1 } };
    case "throw":
      throw new Error("no");
    case "fail":
      throw new TypeError("no");
    default:
      return undefined;
  }
}
