import { AbstractAgent, type BaseEvent } from "@ag-ui/client";
import { Observable } from "rxjs";
import { replayAgents, withRequest, type Contestant } from "./contestant.js";

const agentOf = replayAgents({ AbstractAgent, Observable });

/** No runner at all: `runAgent` with its default apply stage, which every runner that uses it has to be slower than. */
export async function clientAlone(): Promise<Contestant> {
  return {
    prepare: (events, input) => {
      const agent = withRequest(agentOf(events), input);
      return () =>
        new Observable<BaseEvent>((subscriber) => {
          agent.runAgent({ runId: input.runId }, { onEvent: ({ event }) => subscriber.next(event) }).then(
            () => subscriber.complete(),
            (error: unknown) => subscriber.error(error),
          );
        });
    },
    close: () => Promise.resolve(),
  };
}
