/** Whoever posts on it asks for the end of the workers that run the agents. */
const END_HOST = "reader:end-host";

/**
 * In a worker: ends it when a tab asks. It says goodbye to nobody and cleans up nothing, so to the runtime this is a
 * crash: the run that was live is found broken by the next worker.
 */
export function endWhenAsked(): void {
  new BroadcastChannel(END_HOST).addEventListener("message", () => close());
}

/** In a tab: ends the shared worker, and where there is none the workers of all tabs. */
export function endHost(): void {
  const channel = new BroadcastChannel(END_HOST);
  channel.postMessage(null);
  channel.close();
}
