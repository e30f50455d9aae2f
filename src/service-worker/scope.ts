/** The part of ServiceWorkerGlobalScope that the relay uses; the compiler has only the types of a page. */
export interface RelayScope {
  readonly location: { readonly origin: string };
  readonly clients: {
    get(id: string): Promise<object | undefined>;
    matchAll(options: {
      readonly type: "window";
      readonly includeUncontrolled: boolean;
    }): Promise<readonly RelayClient[]>;
  };
  addEventListener(type: "fetch", listener: (event: RelayFetchEvent) => void): void;
  removeEventListener(type: "fetch", listener: (event: RelayFetchEvent) => void): void;
}

/** A WindowClient: https://w3c.github.io/ServiceWorker/#windowclient */
export interface RelayClient {
  readonly id: string;
  readonly focused?: boolean;
  readonly visibilityState?: string;
  postMessage(message: unknown, transfer: Transferable[]): void;
}

/** https://w3c.github.io/ServiceWorker/#fetchevent-interface */
export interface RelayFetchEvent {
  readonly request: Request;
  readonly clientId: string;
  respondWith(response: Promise<Response>): void;
  waitUntil(work: Promise<unknown>): void;
}
