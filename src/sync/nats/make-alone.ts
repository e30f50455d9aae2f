import type { Msg, MsgHdrs, NatsConnection } from "@nats-io/nats-core";
import type { Clock } from "../../platform/clock.js";

/** How long the others have to say that they would make the stream, too, in ms. */
const SAY_MS = 500;

const MAKES_HEADER = "Agui-Makes";

/** Less than all ids. */
const MAKING = "!";

export interface MakeContext {
  readonly nc: NatsConnection;
  readonly headers: () => MsgHdrs;
  /** Where the devices of the space hear one another. */
  readonly subject: string;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

/** It is about who makes the stream, and says nothing else. */
export const isAboutMaking = ({ headers }: Msg): boolean => headers?.has(MAKES_HEADER) === true;

/**
 * Of several devices that find no stream, one makes it. A cluster that is asked twice within some ms makes two of one name, of
 * which the one takes no message any more once its leader is another (seen with 2.9.10).
 *
 * @returns false where another device makes it. Errors: those of `make`, and of the connection
 */
export async function makeAlone(of: MakeContext, make: () => Promise<void>): Promise<boolean> {
  const { nc, headers, subject, clock, signal } = of;
  let mine = Math.random().toString(36).slice(2);
  let isFirst = true;
  const say = (): void => {
    const header = headers();
    header.set(MAKES_HEADER, mine);
    nc.publish(subject, undefined, { headers: header });
  };
  const hearing = nc.subscribe(subject, {
    callback: (error: Error | null, { headers: its }: Msg) => {
      const other = (error === null && its?.get(MAKES_HEADER)) || mine;
      if (other < mine) isFirst = false;
      else if (other > mine && !nc.isClosed()) say();
    },
  });
  try {
    say();
    await nc.flush();
    await clock.after(SAY_MS, signal);
    if (!isFirst || signal.aborted) return false;
    mine = MAKING;
    await make();
    return true;
  } finally {
    hearing.unsubscribe();
  }
}
