import { relayRuntime } from "ag-ui-local-runtime/service-worker";
import { BASE } from "./fetch-base.js";

relayRuntime({ basePath: BASE });

/** Where the types of a page have none of a service worker. */
interface Scope {
  skipWaiting(): Promise<void>;
  readonly clients: { claim(): Promise<void> };
  addEventListener(type: string, listener: (event: { waitUntil(work: Promise<void>): void }) => void): void;
}
const scope = globalThis as unknown as Scope;

scope.addEventListener("install", (event) => event.waitUntil(scope.skipWaiting()));
// The page that registers it is its client at once.
scope.addEventListener("activate", (event) => event.waitUntil(scope.clients.claim()));
