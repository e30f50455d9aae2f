import { AbstractAgent, type BaseEvent, type RunAgentInput } from "@ag-ui/client";
import { Observable } from "rxjs";

/** What a {@link Script} is given. */
export interface Stage {
  readonly input: RunAgentInput;
  /** Aborts when the agent is asked to stop, and understands it. */
  readonly signal: AbortSignal;
  /** Hands events out as they are. Does nothing once the run is over. */
  emit(...events: BaseEvent[]): void;
}

/** What an agent does, without any guard: it completes when the script returns and fails with what it throws. */
export type Script = (stage: Stage) => void | Promise<void>;

/** How a {@link scriptedAgent} behaves beside its script. */
export interface ScriptedAgentOptions {
  /** What `abortRun()` does. `signal` (default): aborts {@link Stage.signal}; `nothing`: as AbstractAgent; `throw`: throws. */
  readonly onAbort?: "signal" | "nothing" | "throw";
  /** `run()` throws instead of returning an Observable. */
  readonly throwsInRun?: boolean;
  readonly agentId?: string;
}

/** An agent that follows a script to the letter, protocol or not. Its clones follow the same script. */
class ScriptedAgent extends AbstractAgent {
  private aborting: AbortController | undefined;

  constructor(
    private script: Script,
    private options: ScriptedAgentOptions,
  ) {
    super({ agentId: options.agentId ?? "scripted" });
  }

  override run(input: RunAgentInput): Observable<BaseEvent> {
    if (this.options.throwsInRun === true) throw new Error("thrown by run()");
    return new Observable<BaseEvent>((subscriber) => {
      const aborting = new AbortController();
      this.aborting = aborting;
      const emit = (...events: BaseEvent[]): void => {
        for (const event of events) subscriber.next(event);
      };
      const work = this.script({ input, signal: aborting.signal, emit });
      if (work === undefined) subscriber.complete();
      else {
        work.then(
          () => subscriber.complete(),
          (error: unknown) => subscriber.error(error),
        );
      }
    });
  }

  override abortRun(): void {
    if (this.options.onAbort === "throw") throw new Error("thrown by abortRun()");
    if (this.options.onAbort !== "nothing") this.aborting?.abort();
  }

  /** The base class copies its own fields only. */
  override clone(): ScriptedAgent {
    const copy = super.clone() as ScriptedAgent;
    copy.script = this.script;
    copy.options = this.options;
    copy.aborting = undefined;
    return copy;
  }
}

/** Makes an agent of a script. It is good for one run at a time, as every agent. */
export function scriptedAgent(script: Script, options: ScriptedAgentOptions = {}): AbstractAgent {
  return new ScriptedAgent(script, options);
}
