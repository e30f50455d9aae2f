import { Observable } from "rxjs";

/**
 * A BroadcastChannel. Delivery is best effort: messages may be lost, late, doubled or forged, in any order. Whoever
 * listens must check what arrives.
 */
export interface Channel {
  /** Tells all others of the same name; never itself. Must not throw after `close`. */
  post(message: unknown): void;
  readonly messages$: Observable<unknown>;
  close(): void;
}

/** Opens the channel of a name. */
export type OpenChannel = (name: string) => Channel;

export const openBroadcastChannel: OpenChannel = (name) => {
  const channel = new BroadcastChannel(name);
  // Node keeps its process alive for an open channel; browsers have no such method.
  (channel as { unref?: () => void }).unref?.();
  let closed = false;
  return {
    post(message) {
      if (!closed) channel.postMessage(message);
    },
    messages$: new Observable<unknown>((subscriber) => {
      const listen = (event: MessageEvent): void => subscriber.next(event.data);
      channel.addEventListener("message", listen);
      return () => channel.removeEventListener("message", listen);
    }),
    close() {
      closed = true;
      channel.close();
    },
  };
};
