import { EventType, type AGUIEvent } from "@ag-ui/core";
import type { AbstractAgent, RunAgentInput } from "@ag-ui/client";
import type { AgentRuntimeOptions } from "ag-ui-local-runtime/runtime";
import { defineAgent, type AgentFunction } from "ag-ui-local-runtime/worker";
import { scriptedAgent } from "../../../../src/conformance/scripted-agent.js";

/*
 * The agents that the contract's cases talk to. They are told what to do, and tell what they saw, by runs alone, because
 * whoever asks may be in another context: `opener` opens the gate that another agent waits for, `teller` says how far
 * a run got.
 */

/** What the cases put into `forwardedProps`. */
export interface Props {
  /** What `holder` leaves open while it waits. */
  readonly open?: readonly Open[];
  /** The gate that `holder` and `stepper` wait for and `opener` opens. */
  readonly gate?: string;
  /** The run that `teller` tells of. */
  readonly of?: string;
}

/** Constructs that are open when a run is stopped. */
export type Open = "text" | "call" | "step" | "reasoning" | "activity" | "subagent";

/** How far a run got: what `teller` says in the field `is` of its state. */
export type Progress = "unknown" | "started" | "aborted" | "ended";

/** The name of the CUSTOM event that `holder` and `stepper` emit when they begin to wait. */
export const WAITS = "waits";

/** The bodies of requests are no longer than this, in bytes. */
export const MAX_BODY_BYTES = 100_000;

const propsOf = (input: RunAgentInput): Props => (input.forwardedProps ?? {}) as Props; // the cases' own

/** What the agents of one runtime share. */
class Stage {
  private readonly gates = new Map<string, { readonly opened: Promise<void>; readonly open: () => void }>();
  private readonly progress = new Map<string, Progress>();

  open(name = "gate"): void {
    this.gate(name).open();
  }

  /** Until the gate is open, or the run is stopped. */
  async pass(name = "gate", signal: AbortSignal): Promise<void> {
    if (signal.aborted) return;
    await Promise.race([
      this.gate(name).opened,
      new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true })),
    ]);
  }

  tell(runId = ""): Progress {
    return this.progress.get(runId) ?? "unknown";
  }

  /** An agent that is seen to start, to be stopped and to end. */
  watched(work: AgentFunction): AgentFunction {
    const { progress } = this;
    return async function* (input, context) {
      const { runId } = input;
      const { signal } = context;
      progress.set(runId, "started");
      signal.addEventListener("abort", () => progress.set(runId, "aborted"), { once: true });
      try {
        yield* work(input, context);
      } finally {
        if (!signal.aborted) progress.set(runId, "ended");
      }
    };
  }

  private gate(name: string) {
    let gate = this.gates.get(name);
    if (gate === undefined) {
      let open!: () => void;
      const opened = new Promise<void>((resolve) => (open = resolve));
      this.gates.set(name, (gate = { opened, open }));
    }
    return gate;
  }
}

/** The id of what a run adds, by its part. */
export const idOf = (runId: string, part: string): string => `${runId}-${part}`;

/** Events that open one construct. */
function opening(open: Open, { runId }: RunAgentInput): AGUIEvent[] {
  const messageId = idOf(runId, open);
  switch (open) {
    case "text":
      return [
        { type: EventType.TEXT_MESSAGE_START, messageId, role: "assistant" },
        { type: EventType.TEXT_MESSAGE_CONTENT, messageId, delta: "half a " },
      ];
    case "call":
      return [
        { type: EventType.TOOL_CALL_START, toolCallId: messageId, toolCallName: "look" },
        { type: EventType.TOOL_CALL_ARGS, toolCallId: messageId, delta: '{"at":' },
      ];
    case "step":
      return [{ type: EventType.STEP_STARTED, stepName: "halfway" }];
    case "reasoning":
      return [
        { type: EventType.REASONING_START, messageId },
        { type: EventType.REASONING_MESSAGE_START, messageId, role: "reasoning" },
        { type: EventType.REASONING_MESSAGE_CONTENT, messageId, delta: "hm" },
      ];
    case "activity":
      return [
        { type: EventType.ACTIVITY_SNAPSHOT, messageId, activityType: "plan", content: { done: [1] }, replace: true },
      ];
    case "subagent":
      return [{ type: EventType.SUBAGENT_STARTED, subagentRunId: messageId, name: "helper" }];
  }
}

/** One of everything that AG-UI 0.0.59 knows too, in a valid order. */
export function richEvents({ runId }: Pick<RunAgentInput, "runId">): AGUIEvent[] {
  const [thought, text, call, activity, end] = ["thought", "text", "call", "activity", "end"].map((part) =>
    idOf(runId, part),
  ) as [string, string, string, string, string]; // as many as there are parts
  return [
    { type: EventType.STATE_SNAPSHOT, snapshot: { count: 1, seen: ["a"] } },
    { type: EventType.STEP_STARTED, stepName: "think" },
    { type: EventType.REASONING_START, messageId: thought },
    { type: EventType.REASONING_MESSAGE_START, messageId: thought, role: "reasoning" },
    { type: EventType.REASONING_MESSAGE_CONTENT, messageId: thought, delta: "let me " },
    { type: EventType.REASONING_MESSAGE_CONTENT, messageId: thought, delta: "see" },
    { type: EventType.REASONING_MESSAGE_END, messageId: thought },
    { type: EventType.REASONING_END, messageId: thought },
    { type: EventType.STEP_FINISHED, stepName: "think" },
    { type: EventType.TEXT_MESSAGE_START, messageId: text, role: "assistant" },
    { type: EventType.TEXT_MESSAGE_CONTENT, messageId: text, delta: "I look " },
    { type: EventType.TEXT_MESSAGE_CONTENT, messageId: text, delta: "it up: 👋 “\u2028”" },
    { type: EventType.TEXT_MESSAGE_END, messageId: text },
    { type: EventType.TOOL_CALL_START, toolCallId: call, toolCallName: "look", parentMessageId: text },
    { type: EventType.TOOL_CALL_ARGS, toolCallId: call, delta: '{"at":' },
    { type: EventType.TOOL_CALL_ARGS, toolCallId: call, delta: '"here"}' },
    { type: EventType.TOOL_CALL_END, toolCallId: call },
    {
      type: EventType.TOOL_CALL_RESULT,
      toolCallId: call,
      messageId: idOf(runId, "result"),
      content: "found",
      role: "tool",
    },
    {
      type: EventType.STATE_DELTA,
      delta: [
        { op: "replace", path: "/count", value: 2 },
        { op: "add", path: "/seen/-", value: "b" },
      ],
    },
    {
      type: EventType.ACTIVITY_SNAPSHOT,
      messageId: activity,
      activityType: "plan",
      content: { done: [] },
      replace: true,
    },
    {
      type: EventType.ACTIVITY_DELTA,
      messageId: activity,
      activityType: "plan",
      patch: [{ op: "add", path: "/done/-", value: "look" }],
    },
    { type: EventType.CUSTOM, name: "note", value: { of: "the case" } },
    { type: EventType.TEXT_MESSAGE_START, messageId: end, role: "assistant" },
    { type: EventType.TEXT_MESSAGE_CONTENT, messageId: end, delta: "That is it." },
    { type: EventType.TEXT_MESSAGE_END, messageId: end },
  ];
}

function said(runId: string, text: string): AGUIEvent[] {
  const messageId = idOf(runId, "answer");
  return [
    { type: EventType.TEXT_MESSAGE_START, messageId, role: "assistant" },
    ...text.split(/(?<= )/).map((delta): AGUIEvent => ({ type: EventType.TEXT_MESSAGE_CONTENT, messageId, delta })),
    { type: EventType.TEXT_MESSAGE_END, messageId },
  ];
}

/** Its interrupt is of AG-UI: a question to a person, answered by `resume` of the next run. */
export const interruptOf = (runId: string) => ({ id: idOf(runId, "ask"), reason: "confirmation", message: "Really?" });

function makeAgents(stage: Stage): Record<string, AbstractAgent | (() => Promise<AbstractAgent>)> {
  const agent = (work: AgentFunction): AbstractAgent =>
    defineAgent(stage.watched(work), { description: "of the contract" });

  /** Says what it was given. */
  const echo = agent(async function* ({ runId, messages, state }) {
    yield* said(runId, `You said: ${String(messages.at(-1)?.content)}`);
    yield {
      type: EventType.STATE_SNAPSHOT,
      snapshot: { given: (state ?? null) as unknown, messages: messages.length },
    };
  });

  return {
    echo,
    // Ids that look like something else.
    "a/b": echo,
    clear: echo,
    "..": echo,
    "👋 agent": echo,
    lister: echo,

    rich: agent(async function* (input) {
      yield* richEvents(input);
    }),

    /** Adds one to the count of the state that it is given. */
    adder: agent(async function* ({ state }) {
      const { count } = state as { readonly count: number }; // of `rich`, which the cases run before
      yield { type: EventType.STATE_DELTA, delta: [{ op: "replace", path: "/count", value: count + 1 }] };
    }),

    /** As rich, but waits in front of its last event, each of the others being alone in its commit. */
    stepper: agent(async function* (input, { signal }) {
      const events = richEvents(input);
      for (const event of events.slice(0, -1)) {
        yield event;
        await new Promise((resolve) => setTimeout(resolve));
      }
      yield { type: EventType.CUSTOM, name: WAITS, value: null };
      await stage.pass(propsOf(input).gate, signal);
      yield* events.slice(-1);
    }),

    /** Opens what it is told to, says so, and waits until it is stopped or let on. */
    holder: agent(async function* (input, { signal }) {
      const { open = [], gate } = propsOf(input);
      for (const one of open) yield* opening(one, input);
      yield { type: EventType.CUSTOM, name: WAITS, value: null };
      await stage.pass(gate, signal);
      if (!signal.aborted && open.includes("text")) {
        yield { type: EventType.TEXT_MESSAGE_CONTENT, messageId: idOf(input.runId, "text"), delta: "sentence" };
      }
    }),

    opener: agent(async function* (input) {
      const { gate } = propsOf(input);
      stage.open(gate);
      yield { type: EventType.CUSTOM, name: "opened", value: gate };
    }),

    teller: agent(async function* (input) {
      yield { type: EventType.STATE_SNAPSHOT, snapshot: { is: stage.tell(propsOf(input).of) } };
    }),

    /** Asks a person first, and says then what the answer was. */
    asker: scriptedAgent(({ input, emit }) => {
      const { threadId, runId, resume } = input;
      emit({ type: EventType.RUN_STARTED, threadId, runId } as AGUIEvent);
      if (resume === undefined || resume.length === 0) {
        const interrupts = [interruptOf(runId)];
        emit({
          type: EventType.RUN_FINISHED,
          threadId,
          runId,
          outcome: { type: "interrupt", interrupts },
        } as AGUIEvent);
        return;
      }
      emit(...said(runId, `It was ${JSON.stringify(resume.map(({ status, payload }) => [status, payload]))}`));
      emit({ type: EventType.RUN_FINISHED, threadId, runId } as AGUIEvent);
    }),

    /** Throws in the middle of what it says. */
    thrower: agent(async function* ({ runId }) {
      yield* opening("text", { runId } as RunAgentInput);
      throw new Error("the agent gave up");
    }),

    /** Fails before its first event. */
    early: scriptedAgent(() => Promise.reject(new Error("the agent never began"))),
    inRun: scriptedAgent(() => undefined, { throwsInRun: true }),

    /** Never says anything, and does not hear that it is to stop. */
    stubborn: scriptedAgent(() => new Promise(() => undefined), { onAbort: "nothing" }),

    /** What CopilotKit's suggestion engine is answered with: one call of a tool. */
    suggester: agent(async function* ({ runId }) {
      const toolCallId = idOf(runId, "suggestions");
      yield { type: EventType.TOOL_CALL_START, toolCallId, toolCallName: "copilotkitSuggest" };
      yield { type: EventType.TOOL_CALL_ARGS, toolCallId, delta: '{"suggestions":[]}' };
      yield { type: EventType.TOOL_CALL_END, toolCallId };
    }),

    /** Cannot be loaded. */
    absent: () => Promise.reject(new Error("the agent's code is not there")),
  };
}

/** Fails in the words of a service whose errors say too much. */
const SERVICE_SECRET = "key sk-secret was refused: 401";

/** What a runtime is made of that the contract's cases are to hold for; add where it keeps its runs. */
export function contractRuntimeOptions() {
  return {
    agents: makeAgents(new Stage()),
    maxBodyBytes: MAX_BODY_BYTES,
    transcriptionService: {
      transcribeFile: async ({ audioFile, mimeType, size }) => {
        const words = await audioFile.text();
        if (words === "refuse") throw new Error(SERVICE_SECRET);
        if (words === "busy") throw Object.assign(new Error(SERVICE_SECRET), { status: 429 });
        return `${words} (${mimeType}, ${size} bytes)`;
      },
    },
  } satisfies AgentRuntimeOptions;
}
