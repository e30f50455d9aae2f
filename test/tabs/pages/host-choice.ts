/**
 * Changes what `SharedWorker` is for the page, as its address asks: with `dedicated` the browser has none, so that the
 * host is a worker of the tab; with `script` hosts are made from the script that is named there.
 */
export function chooseHost(asked: URLSearchParams): void {
  const script = asked.get("script");
  if (asked.has("dedicated")) Reflect.deleteProperty(globalThis, "SharedWorker");
  else if (script !== null) globalThis.SharedWorker = sharedWorkerOf(script);
}

const sharedWorkerOf = (script: string): typeof SharedWorker =>
  class extends SharedWorker {
    constructor(url: string | URL, options?: string | WorkerOptions) {
      super(String(url).includes("/scripted.worker") ? script : url, options);
    }
  };
