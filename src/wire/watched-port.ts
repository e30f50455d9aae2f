import { abortWith, onAbort } from "../platform/abort.js";
import { invalidInput } from "../run/errors.js";
import { toErrorData } from "./errors.js";

/** @throws RunnerError `invalid-input` */
export function checkPort(port: unknown): MessagePort {
  if (port instanceof MessagePort) return port;
  throw invalidInput("port", "A MessagePort must be handed over");
}

/** Aborts when the tab is gone, or posts anything to the port, which is then closed. */
export function untilEnd(port: MessagePort, gone: AbortSignal): AbortSignal {
  const watching = abortWith(gone);
  onAbort(watching.signal, () => port.close());
  port.onmessage = () => watching.abort();
  return watching.signal;
}

/** Posts what comes, until the end or a failure: the tab asks anew. */
export async function postAll(port: MessagePort, all: AsyncIterable<unknown>): Promise<void> {
  try {
    for await (const one of all) port.postMessage(one);
  } catch (error) {
    port.postMessage({ error: toErrorData(error) });
  }
}
