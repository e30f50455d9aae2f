import { Subject } from "rxjs";
import type { OpenChannel } from "./channel.js";

type Deliver = (message: unknown) => void;

/**
 * Channels within one process, with the semantics of BroadcastChannel
 * (https://html.spec.whatwg.org/multipage/web-messaging.html#broadcasting-to-other-browsing-contexts): those of one name
 * hear each other, never themselves, later than the call and in its order; each gets a copy of its own. Every call makes
 * a world of its own.
 */
export function inProcessChannels(): OpenChannel {
  const hub = new Map<string, Set<Deliver>>();
  return (name) => {
    const messages$ = new Subject<unknown>();
    let closed = false;
    const deliver: Deliver = (message) => {
      if (!closed) messages$.next(message);
    };
    const members = hub.get(name) ?? new Set<Deliver>();
    hub.set(name, members.add(deliver));
    return {
      post(message) {
        if (closed) return;
        // What cannot be cloned is told to the sender, whoever listens; what it changes afterwards nobody sees.
        const sent = structuredClone(message);
        for (const other of members) {
          if (other !== deliver) queueMicrotask(() => other(structuredClone(sent)));
        }
      },
      messages$: messages$.asObservable(),
      close() {
        closed = true;
        members.delete(deliver);
        if (members.size === 0 && hub.get(name) === members) hub.delete(name);
      },
    };
  };
}
