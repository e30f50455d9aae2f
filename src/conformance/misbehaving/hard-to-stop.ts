import { EventType } from "@ag-ui/core";
import { answerId, say } from "../good-agents.js";
import { expectThat } from "../expect.js";
import { scriptedAgent, type ScriptedAgentOptions, type Script } from "../scripted-agent.js";
import { agents, SAID, type MisbehavingAgent } from "./agent.js";

const never = (): Promise<never> => new Promise(() => {});

const begin: (...given: Parameters<Script>) => void = ({ input, emit }) => {
  const id = answerId(input);
  emit(say.started(input), say.textStart(id), say.text(id, SAID));
};

const deaf = (options: ScriptedAgentOptions): MisbehavingAgent["make"] => {
  return () =>
    scriptedAgent(async (stage) => {
      begin(stage);
      await never();
    }, options);
};

const whenAborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));

/** Agents that do not end as they should when they are asked to stop. */
export const HARD_TO_STOP = agents([
  {
    name: "ignores-abort",
    does: "hears abortRun() and goes on for ever",
    isStopped: true,
    keeps: SAID,
    make: deaf({ onAbort: "signal" }),
  },
  {
    name: "default-abort",
    does: "has the default abortRun(), which does nothing",
    isStopped: true,
    keeps: SAID,
    make: deaf({ onAbort: "nothing" }),
  },
  {
    name: "throws-in-abort",
    does: "throws in abortRun() and goes on for ever",
    isStopped: true,
    keeps: SAID,
    make: deaf({ onAbort: "throw" }),
  },
  {
    name: "throws-after-stop",
    does: "throws when it was asked to stop",
    isStopped: true,
    keeps: SAID,
    make: () =>
      scriptedAgent(async (stage) => {
        begin(stage);
        await whenAborted(stage.signal);
        await Promise.resolve();
        throw new Error("AbortError, or worse");
      }),
  },
  {
    name: "says-error-after-stop",
    does: "emits RUN_ERROR when it was asked to stop, as HttpAgent does",
    isStopped: true,
    keeps: SAID,
    make: () =>
      scriptedAgent(async (stage) => {
        begin(stage);
        await whenAborted(stage.signal);
        stage.emit({ type: EventType.RUN_ERROR, message: "signal is aborted without reason", code: "abort" });
      }),
  },
  {
    name: "breaks-protocol-after-stop",
    does: "emits an event that is not valid when it was asked to stop",
    isStopped: true,
    keeps: SAID,
    make: () =>
      scriptedAgent(async (stage) => {
        begin(stage);
        await whenAborted(stage.signal);
        stage.emit(say.textEnd("never-started"));
      }),
  },
  {
    name: "completes-after-stop",
    does: "completes without a terminal event when it was asked to stop",
    isStopped: true,
    keeps: SAID,
    make: () =>
      scriptedAgent(async (stage) => {
        begin(stage);
        await whenAborted(stage.signal);
      }),
  },
  {
    name: "finishes-after-stop",
    does: "finishes as if nothing had been asked when it was asked to stop",
    isStopped: true,
    keeps: SAID,
    make: () =>
      scriptedAgent(async (stage) => {
        begin(stage);
        await whenAborted(stage.signal);
        stage.emit(say.textEnd(answerId(stage.input)), say.finished(stage.input));
      }),
  },
  {
    name: "emits-after-stop",
    does: "goes on emitting when it was asked to stop, and when its run is over",
    isStopped: true,
    staysOn: true,
    keeps: SAID,
    make: ({ over, done }) =>
      scriptedAgent(async (stage) => {
        const { input, emit, signal } = stage;
        begin(stage);
        await whenAborted(signal);
        emit(say.text(answerId(input), ", a last word"));
        await over.opened;
        emit(say.text(answerId(input), ", much too late"), say.textEnd(answerId(input)), say.finished(input));
        done.open();
      }),
    check: ({ view, input }) => {
      const said = JSON.stringify(view.messages.find((message) => message.id === answerId(input)));
      expectThat(
        !said.includes("much too late"),
        "what an agent emits after its run is over must not be recorded",
        said,
      );
    },
  },
]);
