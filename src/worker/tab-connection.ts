import { expose } from "comlink";
import { sharedController } from "../platform/abort.js";
import { systemClock } from "../platform/clock.js";
import { tabLifeLockName } from "../platform/names.js";
import { invalidInput } from "../run/errors.js";
import { guardedEndpoint } from "../wire/endpoint.js";
import { reply } from "../wire/errors.js";
import type { CallContext, Handlers, HostCalls } from "../runtime/host-api.js";
import type { HostGone, TabHello } from "../wire/shapes.js";
import { handlersOf, type TabApiParts } from "./tab-api.js";

/** How long a link waits for its tab to name itself, in ms. */
const UNNAMED_MS = 60_000;

/** A raw link to a tab: a SharedWorker's port, the scope of a dedicated worker, or one end of a channel. */
export interface RawPort {
  postMessage(message: unknown, transfer: Transferable[]): void;
  addEventListener(type: "message", listener: (event: MessageEvent<unknown>) => void): void;
  removeEventListener(type: "message", listener: (event: MessageEvent<unknown>) => void): void;
  /** A dedicated worker's is open already. */
  start?(): void;
}

/**
 * One tab's link to this host. Ends when the tab's life lock falls, the only sign of a closed tab. No run ends with it
 * (L11).
 *
 * @param onTab called once the tab has named itself: from then on it is counted
 * @returns the port for the tab's `hello`, and how to end the link
 */
export function connectTab(
  raw: RawPort,
  parts: TabApiParts,
  onTab: (tabId: string) => void,
  onGone: () => void,
): { readonly port: MessagePort; readonly close: (locked?: boolean) => void } {
  const { lives } = parts;
  const ended = sharedController();
  const { signal } = ended;

  const { port1, port2 } = new MessageChannel();
  let tabId: string | undefined;
  let nameIs!: (tabId: string) => void;
  const named = new Promise<string>((resolve) => (nameIs = resolve));
  const calls = exposed(handlersOf(parts, signal, { id: () => tabId, named }));
  expose(calls, guardedEndpoint(port1, calls));

  const listen = ({ data }: MessageEvent<unknown>): void => {
    if (!isTabHello(data)) return;
    raw.removeEventListener("message", listen);
    ({ tabId } = data);
    nameIs(tabId);
    onTab(tabId);
    // The tab took the lock before it named it, so this waits for the tab's end.
    void lives.whenFree(tabLifeLockName(data.tabId), signal).then(() => close());
  };
  raw.addEventListener("message", listen);
  // A tab that asked again, or left before the hello came, never answers.
  void systemClock.after(UNNAMED_MS, signal).then(() => {
    if (tabId === undefined) close();
  });

  function close(locked = false): void {
    if (signal.aborted) return;
    ended.abort();
    raw.removeEventListener("message", listen);
    // A tab that only seemed to be gone connects again.
    raw.postMessage({ type: "gone", ...(locked && { locked }) } satisfies HostGone, []);
    port1.close();
    onGone();
  }
  return { port: port2, close };
}

type Handler = (context: CallContext, ...given: unknown[]) => unknown;

function exposed(handlers: Handlers): HostCalls {
  const calls = Object.entries(handlers as unknown as Record<string, Handler>).map(([name, handle]) => [
    name,
    async (context: unknown, ...given: unknown[]) => {
      const answer = await reply(() => handle(checkContext(context), ...given)); // which checks them
      // Nothing comes on the port of a call that was refused.
      if ("error" in answer) given.forEach((port) => port instanceof MessagePort && port.close());
      return answer;
    },
  ]);
  return Object.fromEntries(calls) as HostCalls; // one for each handler
}

/** @throws RunnerError `invalid-input` */
function checkContext(context: unknown): CallContext {
  const headers = (context as { readonly headers?: unknown } | null)?.headers;
  const isRecord = typeof headers === "object" && headers !== null && !Array.isArray(headers);
  if (isRecord && Object.values(headers).every((value) => typeof value === "string")) {
    return { headers: headers as CallContext["headers"] }; // just checked
  }
  throw invalidInput("headers", "headers must be a record of strings");
}

function isTabHello(data: unknown): data is TabHello {
  const hello = data as Partial<TabHello> | null;
  return hello?.type === "tab" && typeof hello.tabId === "string" && hello.tabId !== "";
}
