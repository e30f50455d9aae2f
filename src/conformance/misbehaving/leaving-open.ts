import { EventType, type AGUIEvent } from "@ag-ui/core";
import { expectThat, shown } from "../expect.js";
import { answerId, say } from "../good-agents.js";
import { scriptedAgent, type Script, type Stage } from "../scripted-agent.js";
import { agents, SAID, type MisbehavingAgent } from "./agent.js";

const reasoning = (): AGUIEvent[] => [
  { type: EventType.REASONING_START, messageId: "thought" },
  { type: EventType.REASONING_MESSAGE_START, messageId: "thought", role: "reasoning" },
  { type: EventType.REASONING_MESSAGE_CONTENT, messageId: "thought", delta: "hm" },
];
const toolCall = (): AGUIEvent[] => [
  { type: EventType.TOOL_CALL_START, toolCallId: "call", toolCallName: "look" },
  { type: EventType.TOOL_CALL_ARGS, toolCallId: "call", delta: '{"at":' },
];
const step = (): AGUIEvent[] => [{ type: EventType.STEP_STARTED, stepName: "step" }];
const subagent = (): AGUIEvent[] => [{ type: EventType.SUBAGENT_STARTED, subagentRunId: "sub", name: "helper" }];

/** Opens one of everything but text; the subagent comes last. */
export const openingEverything = (): AGUIEvent[] => [...toolCall(), ...reasoning(), ...step(), ...subagent()];

/** What opens each kind of construct and leaves it so. */
export const OPENINGS = {
  text: ({ input }: Stage): AGUIEvent[] => [say.textStart(answerId(input)), say.text(answerId(input), SAID)],
  "tool-call": toolCall,
  reasoning,
  step,
  subagent,
} as const satisfies Record<string, (stage: Stage) => AGUIEvent[]>;

export type Construct = keyof typeof OPENINGS;
const CONSTRUCTS = Object.keys(OPENINGS) as readonly Construct[];
const ARTICLE: Record<Construct, string> = {
  text: "an open text",
  "tool-call": "an open tool call",
  reasoning: "open reasoning",
  step: "an open step",
  subagent: "an open subagent",
};

/** One agent for each construct. */
function each<Name extends string>(
  of: (construct: Construct) => MisbehavingAgent<`${Name}-${Construct}`>,
): MisbehavingAgent<`${Name}-${Construct}`>[] {
  return CONSTRUCTS.map(of);
}

/** What each kind of construct has emitted before the end. */
const FIRST: Record<Construct, EventType> = {
  text: EventType.TEXT_MESSAGE_CONTENT,
  "tool-call": EventType.TOOL_CALL_ARGS,
  reasoning: EventType.REASONING_MESSAGE_CONTENT,
  step: EventType.STEP_STARTED,
  subagent: EventType.SUBAGENT_STARTED,
};

/** What came before the end counts, however the end came. */
const keeps = (construct: Construct): Pick<MisbehavingAgent, "keeps" | "check"> => ({
  ...(construct === "text" && { keeps: SAID }),
  check: ({ events }) => {
    const kept = events.some(({ type }) => type === FIRST[construct]);
    expectThat(kept, `what came before must be kept: ${FIRST[construct]}`, shown(events.map(({ type }) => type)));
  },
});

/** An agent that opens a construct, and then does what `work` does. */
const afterOpening =
  (construct: Construct, work: Script = () => {}): MisbehavingAgent["make"] =>
  () =>
    scriptedAgent(async (stage) => {
      stage.emit(say.started(stage.input), ...OPENINGS[construct](stage));
      await Promise.resolve();
      await work(stage);
    });

/** Agents whose stream ends, one way or another, with something open. */
export const LEAVING_OPEN = agents([
  ...each<"errors-in">((construct) => ({
    name: `errors-in-${construct}`,
    does: `fails with ${ARTICLE[construct]}`,
    ends: EventType.RUN_ERROR,
    ...keeps(construct),
    make: afterOpening(construct, () => {
      throw new Error("boom");
    }),
  })),
  ...each<"ends-without-terminal-in">((construct) => ({
    name: `ends-without-terminal-in-${construct}`,
    does: `completes without a terminal event, with ${ARTICLE[construct]}`,
    ...keeps(construct),
    make: afterOpening(construct),
  })),
  ...each<"finishes-in">((construct) => ({
    name: `finishes-in-${construct}`,
    does: `emits RUN_FINISHED with ${ARTICLE[construct]}`,
    ...keeps(construct),
    make: afterOpening(construct, ({ input, emit }) => emit(say.finished(input))),
  })),
  ...each<"reports-error-in">((construct) => ({
    name: `reports-error-in-${construct}`,
    does: `emits RUN_ERROR with ${ARTICLE[construct]}`,
    ends: EventType.RUN_ERROR,
    ...keeps(construct),
    check: (outcome) => {
      keeps(construct).check?.(outcome);
      const message = outcome.events.at(-1)?.["message"];
      expectThat(message === "its own words", "the agent's own RUN_ERROR must be kept", `it says ${shown(message)}`);
    },
    make: afterOpening(construct, ({ emit }) => emit(say.failed("its own words"))),
  })),
]);
