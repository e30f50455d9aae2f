import { Observable } from "rxjs";

/** A BroadcastChannel. Messages may be lost, late, duplicated, reordered or forged: subscribers must check them. */
export interface Channel {
  /** Sends to all other channels of the same name. Must not throw after `close`. */
  post(message: unknown): void;
  readonly messages$: Observable<unknown>;
  close(): void;
}

/** Opens a channel by name; channels of one name form a group. */
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
