import { answerServiceWorker, connectRuntime, installRuntimeFetch } from "ag-ui-local-runtime/client";
import { ContractBench } from "../../unit/runtime/contract/contract-bench.js";
import { CONTRACT_CASES } from "../../unit/runtime/contract/contract-cases.js";
import { enveloped, type WayIn } from "../../unit/runtime/contract/way-in.js";
import { BASE } from "./fetch-base.js";
import { useServiceWorker } from "./use-service-worker.js";
import { workerName } from "./worker-name.js";

const asked = new URLSearchParams(location.search);
const worker = asked.get("worker") ?? "contract";

const runtime = connectRuntime({
  hosts: {
    shared: (name) =>
      new SharedWorker(new URL("./contract.worker.ts", import.meta.url), {
        type: "module",
        name: workerName(worker, name),
      }),
  },
});

/** The way that the page's address asks for. */
async function openWay(): Promise<WayIn> {
  const way = asked.get("way") ?? "install";
  const below = (path: string): string => `${location.origin}${BASE}${path}`;
  const plain: WayIn = {
    name: way,
    request: (path, init) => fetch(below(path), init),
    url: below,
    close: () => runtime.close(),
  };
  switch (way) {
    case "install":
      installRuntimeFetch(runtime, { basePath: BASE });
      return plain;
    case "install-single":
      installRuntimeFetch(runtime, { basePath: BASE });
      return enveloped(plain);
    default:
      answerServiceWorker(runtime);
      await useServiceWorker();
      return plain;
  }
}

const opening = openWay();

/** The cases that this way can be asked. */
async function caseNames(): Promise<readonly string[]> {
  const { single = false } = await opening;
  return CONTRACT_CASES.filter(({ needs }) => !single || needs !== "routes").map(({ name }) => name);
}

/** Checks one case. @returns why it failed; undefined where it passed */
async function check(name: string): Promise<string | undefined> {
  try {
    await CONTRACT_CASES.find((one) => one.name === name)!.check(new ContractBench(await opening));
    return undefined;
  } catch (error) {
    return error instanceof Error ? `${error.message}\n${error.stack ?? ""}` : String(error);
  }
}

declare global {
  interface Window {
    contract: { readonly caseNames: typeof caseNames; readonly check: typeof check };
  }
}

window.contract = { caseNames, check };
