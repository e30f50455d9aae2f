import type { RunAgentInput } from "@ag-ui/client";
import { messageOf } from "../run/errors.js";
import type { Bench, Thread } from "./bench.js";
import { expectThat, fail } from "./expect.js";
import { answering, FIRST_PART, held, type HeldAgent } from "./good-agents.js";
import type { Gate } from "./patience.js";
import type { Recording } from "./recording.js";
import { Tab } from "./tab.js";
import { hasText, mustAgree, mustBeOneRun, mustBeValid, rebuild } from "./view.js";

/** Waits until a held agent pauses. */
export async function untilHeld(run: Recording): Promise<void> {
  await run.saw(hasText(FIRST_PART), "the first part of the answer while the agent works");
}

/**
 * A run of a new thread, asked "hello", whose agent has emitted its first part and pauses.
 *
 * @param earlier what a run before it has answered
 */
export async function heldRun(bench: Bench, earlier?: string): Promise<HeldAgent & HeldRun> {
  const tab = new Tab(bench.thread());
  if (earlier !== undefined) await tab.turn(answering(earlier), "first");
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

/** A connection must rebuild what the tab of the runs has. */
export async function mustHaveRebuilt(connection: Recording, tab: Tab): Promise<void> {
  const events = await connection.all();
  mustBeValid(connection.name, events);
  mustAgree(connection.name, await rebuild(connection.name, events), tab.view);
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
