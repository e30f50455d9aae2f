import type { RunAgentInput } from "@ag-ui/client";
import { messageOf } from "../run/errors.js";
import type { Bench, Thread } from "./bench.js";
import { expectThat, fail } from "./expect.js";
import { answering, FIRST_PART, held, type HeldAgent } from "./good-agents.js";
import type { Gate } from "./patience.js";
import type { Recording } from "./recording.js";
import { Tab } from "./tab.js";
import { mustBeOneRun } from "./view.js";

const hasText = (text: string) => (event: { readonly [key: string]: unknown }) => event["delta"] === text;

/** Waits until a held agent pauses. */
export async function untilHeld(run: Recording): Promise<void> {
  await run.saw(hasText(FIRST_PART), "the first part of the answer while the agent works");
}

/** A run of a new thread, asked "hello", whose agent has emitted its first part and pauses. */
export async function heldRun(bench: Bench): Promise<HeldAgent & HeldRun> {
  const tab = new Tab(bench.thread());
  const input = tab.ask("hello");
  const agent = held();
  const run = tab.thread.run(agent.agent, input);
  await untilHeld(run);
  return { ...agent, tab, input, run };
}

interface HeldRun {
  readonly tab: Tab;
  readonly input: RunAgentInput;
  readonly run: Recording;
}

/** The refusal of the contract, thrown or as an error; nothing was started. */
export async function mustBeRefused(second: Recording, called: Gate): Promise<void> {
  const end = await second.whenEnded();
  if (end.is === "completed") fail(`a run of a busy thread must be refused, thrown or as an error`, second.account());
  else {
    const rule = `the refusal of a busy thread must have the message "Thread already running"`;
    expectThat(messageOf(end.error) === "Thread already running", rule, `it is "${messageOf(end.error)}"`);
  }
  expectThat(!called.isOpen, "the agent of a refused run must not be started");
}

/** A complete run after the one before, however that ended. */
export async function mustTakeAnother(thread: Thread): Promise<void> {
  const input = new Tab(thread).ask("and now?");
  mustBeOneRun("the next run", await thread.run(answering("here it is"), input).all(), input);
}
