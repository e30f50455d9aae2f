import { EventType } from "@ag-ui/core";
import type { BaseEvent } from "@ag-ui/client";
import { expectSame, expectThat } from "../expect.js";
import { answerId, say } from "../good-agents.js";
import { scriptedAgent } from "../scripted-agent.js";
import { afterAnswer, agents, answer, never, SAID } from "./agent.js";

/** An event that the types do not allow. */
const wrong = (event: { readonly type: string; readonly [key: string]: unknown }): BaseEvent =>
  // On purpose: what agents emit comes from servers too, and no compiler has seen it.
  event as unknown as BaseEvent;

/** A message that an agent restates and that the thread does not have. */
export const RESTATED = { id: "restated", role: "assistant", content: "from an earlier run" } as const;

/** Agents whose events are not what AG-UI says, or what runners do not expect. */
export const BREAKING_PROTOCOL = agents([
  {
    name: "goes-on-after-terminal",
    does: "emits events after its RUN_FINISHED",
    keeps: SAID,
    check: ({ replay }) => {
      const late = replay.some((event) => event["messageId"] === "too-late");
      expectThat(!late, "what an agent emits after its terminal event must not be on replay");
    },
    make: afterAnswer(({ input, emit }) => {
      emit(say.finished(input));
      emit(say.textStart("too-late"), say.text("too-late", "too late"), say.textEnd("too-late"));
    }),
  },
  {
    name: "goes-on-after-error",
    does: "emits events after its RUN_ERROR",
    ends: EventType.RUN_ERROR,
    keeps: SAID,
    make: afterAnswer(({ input, emit }) => {
      emit(say.failed("out of tokens"));
      emit(say.textStart("too-late"), say.text("too-late", "too late"), say.textEnd("too-late"), say.finished(input));
    }),
  },
  {
    name: "two-terminals",
    does: "emits RUN_FINISHED and then RUN_ERROR",
    keeps: SAID,
    make: afterAnswer(({ input, emit }) => {
      emit(say.finished(input));
      emit(say.failed("after the end"));
    }),
  },
  {
    name: "terminal-twice",
    does: "emits the same RUN_FINISHED twice",
    ends: EventType.RUN_FINISHED,
    keeps: SAID,
    make: afterAnswer(({ input, emit }) => emit(say.finished(input), say.finished(input))),
  },
  {
    name: "restates-an-earlier-run",
    does: "restates an earlier run before the one that was asked for",
    make: () =>
      scriptedAgent(async ({ input, emit }) => {
        const earlier = { threadId: input.threadId, runId: `${input.runId}-earlier` };
        const messages = [...structuredClone(input.messages), { ...RESTATED }];
        emit(say.started(earlier), { type: EventType.MESSAGES_SNAPSHOT, messages }, say.finished(earlier));
        await Promise.resolve();
        emit(say.started(input), ...answer(input), say.finished(input));
      }),
  },
  {
    name: "never-completes",
    does: "never completes after its RUN_FINISHED",
    ends: EventType.RUN_FINISHED,
    keeps: SAID,
    make: afterAnswer(async ({ input, emit }) => {
      emit(say.finished(input));
      await never();
    }),
  },
  {
    name: "run-started-twice",
    does: "emits the same RUN_STARTED twice",
    make: () =>
      scriptedAgent(async ({ input, emit }) => {
        emit(say.started(input), say.started(input), ...answer(input));
        await Promise.resolve();
        emit(say.finished(input));
      }),
  },
  {
    name: "wrong-ids",
    does: "names another thread and another run in its lifecycle events",
    ends: EventType.RUN_FINISHED,
    keeps: SAID,
    make: () =>
      scriptedAgent(async ({ input, emit }) => {
        const ids = { threadId: "another-thread", runId: "another-run" };
        emit(say.started(ids), ...answer(input));
        await Promise.resolve();
        emit(say.finished(ids));
      }),
  },
  {
    name: "content-of-unknown-message",
    does: "emits the content of a message that it never started",
    ends: EventType.RUN_ERROR,
    keeps: SAID,
    make: afterAnswer(({ input, emit }) => emit(say.text("never-started", "?"), say.finished(input))),
  },
  {
    name: "ends-a-message-twice",
    does: "ends a message twice",
    ends: EventType.RUN_ERROR,
    keeps: SAID,
    make: afterAnswer(({ input, emit }) => emit(say.textEnd(answerId(input)), say.finished(input))),
  },
  {
    name: "malformed-event",
    does: "emits an event with a field of the wrong type",
    ends: EventType.RUN_ERROR,
    keeps: SAID,
    make: afterAnswer(({ input, emit }) =>
      emit(wrong({ type: EventType.TEXT_MESSAGE_START, messageId: 7, role: "assistant" }), say.finished(input)),
    ),
  },
  {
    name: "unknown-event-type",
    does: "emits an event of a type that AG-UI does not know",
    keeps: SAID,
    make: afterAnswer(({ input, emit }) => emit(wrong({ type: "BREW_COFFEE", cups: 2 }), say.finished(input))),
  },
  {
    name: "event-that-cannot-be-cloned",
    does: "emits an event with a function in it",
    keeps: SAID,
    make: afterAnswer(({ input, emit }) =>
      emit({ type: EventType.CUSTOM, name: "callback", value: { call: () => 1 } }, say.finished(input)),
    ),
  },
  {
    name: "patch-that-does-not-apply",
    does: "emits a STATE_DELTA that applies to no state it ever had",
    keeps: SAID,
    make: afterAnswer(({ input, emit }) =>
      emit(
        say.state({ there: 1 }),
        { type: EventType.STATE_DELTA, delta: [{ op: "replace", path: "/not/there", value: 2 }] },
        say.finished(input),
      ),
    ),
  },
  {
    name: "chunks-left-open",
    does: "answers in chunks and completes in the middle",
    keeps: SAID,
    make: () =>
      scriptedAgent(async ({ input, emit }) => {
        const messageId = answerId(input);
        emit(say.started(input), {
          type: EventType.TEXT_MESSAGE_CHUNK,
          messageId,
          role: "assistant",
          delta: "said so ",
        });
        await Promise.resolve();
        emit({ type: EventType.TEXT_MESSAGE_CHUNK, messageId, delta: "far" });
      }),
  },
  {
    name: "snapshot-in-a-text",
    does: "emits MESSAGES_SNAPSHOT in the middle of a text",
    ends: EventType.RUN_FINISHED,
    keeps: `${SAID}, and more`,
    make: () =>
      scriptedAgent(async ({ input, emit }) => {
        const id = answerId(input);
        emit(say.started(input), say.textStart(id), say.text(id, SAID));
        await Promise.resolve();
        const messages = [...structuredClone(input.messages), { id, role: "assistant" as const, content: SAID }];
        emit({ type: EventType.MESSAGES_SNAPSHOT, messages });
        emit(say.text(id, ", and more"), say.textEnd(id), say.finished(input));
      }),
  },
  {
    name: "reuses-message-id",
    does: "answers with the id of a message of the history",
    ends: EventType.RUN_FINISHED,
    make: ({ history }) =>
      scriptedAgent(async ({ input, emit }) => {
        const id = history.messages.findLast((message) => message.role === "assistant")?.id ?? answerId(input);
        emit(say.started(input), say.textStart(id), say.text(id, SAID));
        await Promise.resolve();
        emit(say.textEnd(id), say.finished(input));
      }),
    check: ({ view }) => {
      const answers = view.messages.filter((message) => message.role === "assistant");
      expectSame(answers.length, 1, "text under the id of a known message must go on with that message");
    },
  },
]);
