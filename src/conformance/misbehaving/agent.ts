import type { AbstractAgent, BaseEvent, RunAgentInput } from "@ag-ui/client";
import type { AGUIEvent, EventType } from "@ag-ui/core";
import { answerId, say } from "../good-agents.js";
import type { Gate } from "../patience.js";
import { scriptedAgent, type Script } from "../scripted-agent.js";
import type { View } from "../view.js";

/** What a misbehaving agent may know of its run from outside. */
export interface Scene {
  /** What the thread held before the run. */
  readonly history: View;
  /** Opens when the run's Observable has completed. */
  readonly over: Gate;
  /** An agent that does something after that opens it when it is done; see {@link MisbehavingAgent.staysOn}. */
  readonly done: Gate;
}

/** A run of a misbehaving agent, when it is over. */
export interface Outcome {
  readonly input: RunAgentInput;
  /** The run's own events. */
  readonly events: readonly BaseEvent[];
  /** What `connect` gave after it. */
  readonly replay: readonly BaseEvent[];
  /** What a fresh client rebuilt from that. */
  readonly view: View;
}

/** An agent that does one thing that agents should not do, or that runners have stumbled over. */
export interface MisbehavingAgent<Name extends string = string> {
  readonly name: Name;
  /** The end of "an agent that …". */
  readonly does: string;
  /** A fresh one, for one run. */
  readonly make: (scene: Scene) => AbstractAgent;
  /** The run is stopped as soon as the agent has said "said so far". */
  readonly isStopped?: true;
  /** It does something after the run is over. */
  readonly staysOn?: true;
  /** The state that its run is asked with. Default: the thread's. */
  readonly state?: unknown;
  /** How the run must be recorded; absent where both ends are right. */
  readonly ends?: typeof EventType.RUN_FINISHED | typeof EventType.RUN_ERROR;
  /** What its answer must hold on replay. */
  readonly keeps?: string;
  /** What must hold of this agent's run beyond what must hold of every run. */
  readonly check?: (outcome: Outcome) => void;
}

/** What these agents have said when they begin to misbehave. */
export const SAID = "said so far";

/** All that an agent says which answers properly, but its end. */
export function answer(input: RunAgentInput): AGUIEvent[] {
  const id = answerId(input);
  return [say.textStart(id), say.text(id, SAID), say.textEnd(id)];
}

/** An agent that has answered, and then does what `work` does. */
export const afterAnswer =
  (work: Script = () => {}): (() => AbstractAgent) =>
  () =>
    scriptedAgent(async (stage) => {
      stage.emit(say.started(stage.input), ...answer(stage.input));
      await Promise.resolve();
      await work(stage);
    });

/** Never resolves. */
export const never = (): Promise<never> => new Promise(() => {});

/** Keeps the names as literal types. */
export const agents = <const Name extends string>(
  list: readonly MisbehavingAgent<Name>[],
): readonly MisbehavingAgent<Name>[] => list;
