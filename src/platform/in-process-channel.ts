import { Observable, Subject } from "rxjs";
import type { OpenChannel } from "./channel.js";

/**
 * Channels within one process, with the semantics of BroadcastChannel
 * (https://html.spec.whatwg.org/multipage/web-messaging.html#broadcasting-to-other-browsing-contexts): those of one name
 * hear each other, never themselves, later than the call and in its order; each gets a copy of its own. A message reaches
 * those that listen when it is posted: a channel that nobody listens to costs the others nothing. Every call makes
 * a world of its own. One that nobody refers to any more hears nothing, and is forgotten.
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
        // What cannot be cloned is told to the sender, whoever listens; what it changes afterwards nobody sees.
        const sent = structuredClone(message);
        const others = [...(hub.get(name) ?? [])].filter((other) => other !== self);
        if (others.length === 0) return;
        // One task for all: a process may have many that listen and have nothing to do with it.
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
        // What is on its way to it is not delivered any more.
        messages$.complete();
        leave(self);
      },
    };
  };
}
