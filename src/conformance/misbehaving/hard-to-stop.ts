import { EventType } from "@ag-ui/core";
import { answerId, say } from "../good-agents.js";
import { expectThat } from "../expect.js";
import { scriptedAgent, type ScriptedAgentOptions, type Script } from "../scripted-agent.js";
import { agents, never, SAID, type MisbehavingAgent } from "./agent.js";

/** An agent that says something, and then does what `work` does. */
const afterBegin =
  (work: Script, options?: ScriptedAgentOptions): (() => ReturnType<typeof scriptedAgent>) =>
  () =>
    scriptedAgent(async (stage) => {
      const id = answerId(stage.input);
      stage.emit(say.started(stage.input), say.textStart(id), say.text(id, SAID));
      await work(stage);
    }, options);

/** The same, once it is asked to stop. */
const afterStop = (work: Script): ReturnType<typeof afterBegin> =>
  afterBegin(async (stage) => {
    await new Promise((resolve) => stage.signal.addEventListener("abort", resolve, { once: true }));
    await work(stage);
  });

const allStopped = <const Name extends string>(
  list: readonly MisbehavingAgent<Name>[],
): readonly MisbehavingAgent<Name>[] => agents(list.map((agent) => ({ ...agent, isStopped: true, keeps: SAID })));

/** Agents that do not end as they should when they are asked to stop. */
export const HARD_TO_STOP = allStopped([
  {
    name: "ignores-abort",
    does: "hears abortRun() and goes on for ever",
    make: afterBegin(never, { onAbort: "signal" }),
  },
  {
    name: "default-abort",
    does: "has the default abortRun(), which does nothing",
    make: afterBegin(never, { onAbort: "nothing" }),
  },
  {
    name: "throws-in-abort",
    does: "throws in abortRun() and goes on for ever",
    make: afterBegin(never, { onAbort: "throw" }),
  },
  {
    name: "throws-after-stop",
    does: "throws when it was asked to stop",
    make: afterStop(async () => {
      await Promise.resolve();
      throw new Error("AbortError, or worse");
    }),
  },
  {
    name: "says-error-after-stop",
    does: "emits RUN_ERROR when it was asked to stop, as HttpAgent does",
    make: afterStop(({ emit }) =>
      emit({ type: EventType.RUN_ERROR, message: "signal is aborted without reason", code: "abort" }),
    ),
  },
  {
    name: "breaks-protocol-after-stop",
    does: "emits an event that is not valid when it was asked to stop",
    make: afterStop(({ emit }) => emit(say.textEnd("never-started"))),
  },
  {
    name: "completes-after-stop",
    does: "completes without a terminal event when it was asked to stop",
    make: afterStop(() => {}),
  },
  {
    name: "finishes-after-stop",
    does: "finishes as if nothing had been asked when it was asked to stop",
    make: afterStop(({ input, emit }) => emit(say.textEnd(answerId(input)), say.finished(input))),
  },
  {
    name: "emits-after-stop",
    does: "goes on emitting when it was asked to stop, and when its run is over",
    staysOn: true,
    make: ({ over, done }) =>
      afterStop(async ({ input, emit }) => {
        emit(say.text(answerId(input), ", a last word"));
        await over.opened;
        emit(say.text(answerId(input), ", much too late"), say.textEnd(answerId(input)), say.finished(input));
        done.open();
      })(),
    check: ({ view, input }) => {
      const said = JSON.stringify(view.messages.find((message) => message.id === answerId(input)));
      expectThat(!said.includes("much too late"), "nothing may be recorded after the end of a run", said);
    },
  },
]);
