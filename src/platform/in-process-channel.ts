import { Observable, Subject } from "rxjs";
import type { OpenChannel } from "./channel.js";

/**
 * Channels within one process, with the semantics of BroadcastChannel
 * (https://html.spec.whatwg.org/multipage/web-messaging.html#broadcasting-to-other-browsing-contexts): a message
 * reaches all other channels of the name asynchronously, in order, each with its own copy. Only channels with
 * subscribers at the time of the post get it, so others cost nothing. Each call makes a separate set of channels, which
 * holds them weakly.
 */
export function inProcessChannels(): OpenChannel {
  const hub = new Map<string, Set<WeakRef<Subject<unknown>>>>();
  return (name) => {
    const messages$ = new Subject<unknown>();
    const self = new WeakRef(messages$);
    let closed = false;
    const join = (): void => void hub.set(name, (hub.get(name) ?? new Set<WeakRef<Subject<unknown>>>()).add(self));
    const leave = (member: WeakRef<Subject<unknown>>): void => {
      const members = hub.get(name);
      members?.delete(member);
      if (members?.size === 0) hub.delete(name);
    };
    return {
      post(message) {
        if (closed) return;
        // Throws if it cannot be cloned, even without receivers; later changes by the sender have no effect.
        const sent = structuredClone(message);
        const others = [...(hub.get(name) ?? [])].filter((other) => other !== self);
        if (others.length === 0) return;
        // One task for all: a process may have many subscribers that ignore the message.
        queueMicrotask(() => {
          for (const other of others) {
            const there = other.deref();
            if (there === undefined) leave(other);
            else if (there.observed) there.next(structuredClone(sent));
          }
        });
      },
      messages$: new Observable((subscriber) => {
        const listening = messages$.subscribe(subscriber);
        if (!closed) join();
        return () => {
          listening.unsubscribe();
          if (!messages$.observed) leave(self);
        };
      }),
      close() {
        closed = true;
        // Messages in flight are dropped.
        messages$.complete();
        leave(self);
      },
    };
  };
}
