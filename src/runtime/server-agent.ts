import { AbstractAgent, type BaseEvent } from "@ag-ui/client";
import { throwError, type Observable } from "rxjs";

/** Stands for an agent that only servers have: its runs are never executed here. */
export class ServerAgent extends AbstractAgent {
  run(): Observable<BaseEvent> {
    return throwError(
      () => new Error(`The agent "${this.agentId}" runs on servers: what is not recorded cannot be asked of it`),
    );
  }
}
