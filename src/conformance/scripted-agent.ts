import { AbstractAgent, type BaseEvent, type RunAgentInput } from "@ag-ui/client";
import { Observable } from "rxjs";

/** The argument of a {@link Script}. */
export interface Stage {
  readonly input: RunAgentInput;
  /** Aborts when the agent is asked to stop, if it supports that. */
  readonly signal: AbortSignal;
  /** Emits events unchanged. A no-op once the run is over. */
  emit(...events: BaseEvent[]): void;
}

/** What an agent does, unguarded: it completes when the script returns, and fails with what the script throws. */
export type Script = (stage: Stage) => void | Promise<void>;

/** How a {@link scriptedAgent} behaves besides its script. */
export interface ScriptedAgentOptions {
  /**
   * What `abortRun()` does. `signal` (default): aborts {@link Stage.signal}; `nothing`: as AbstractAgent; `throw`:
   * throws.
   */
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

/** Makes an agent of a script. Like every agent it runs once at a time. */
export function scriptedAgent(script: Script, options: ScriptedAgentOptions = {}): AbstractAgent {
  return new ScriptedAgent(script, options);
}
