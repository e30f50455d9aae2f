import { systemClock } from "../platform/clock.js";
import type { RawPort } from "./tab-connection.js";

/*
 * WebKit knows the script of a worker by no address: whatever imports it runs it once more. Bundlers put what the worker's file
 * and the code that it loads later have in common into that file, so it runs again as soon as any of that code is loaded, and
 * what is loaded has classes of its own. The same happens in every engine where the script's address is redirected. So before a
 * worker serves, its script is imported by the address by which others import it: if it has run once more then, that run serves.
 */

/** How long the script may take to run once more, in ms: one that awaits something at its top is not waited for. */
const AGAIN_MS = 2_000;

/** Whoever serves the tabs of this worker. */
export interface Server {
  readonly accept: (port: RawPort) => void;
  readonly close: () => Promise<void>;
}

/** What all runs of the script share. */
interface Runs {
  /** The run that came last. */
  last: object;
  /** Ports of tabs that nobody serves yet. */
  readonly waiting: RawPort[];
  server?: Server;
  /** The server was closed: another one may serve. */
  isClosed?: true;
}

const RUNS = Symbol.for("ag-ui-local-runtime.runs");
type Scope = typeof globalThis & { [RUNS]?: Runs };

/**
 * Serves the tabs of this worker, in the run of its script that does.
 *
 * @param listen tells the ports of tabs; called once for all runs
 * @param serve begins to serve
 */
export function serveOnce(listen: (accept: (port: RawPort) => void) => void, serve: () => Server): Server {
  const scope: Scope = globalThis;
  const run = {};
  const runs = (scope[RUNS] ??= begin(listen, run));
  runs.last = run;
  const serveNow = (): void => {
    // One that comes after another one serves was run again by code that is loaded later.
    if (runs.last !== run || (runs.server !== undefined && runs.isClosed !== true)) return;
    runs.server = serve();
    delete runs.isClosed;
    for (const port of runs.waiting.splice(0)) runs.server.accept(port);
  };
  const served = isModule() ? imported().then(serveNow) : Promise.resolve(serveNow());
  return {
    accept: (port) => (runs.server === undefined ? void runs.waiting.push(port) : runs.server.accept(port)),
    close: async () => {
      await served;
      runs.isClosed = true;
      await runs.server?.close();
    },
  };
}

function begin(listen: (accept: (port: RawPort) => void) => void, last: object): Runs {
  const runs: Runs = { last, waiting: [] };
  listen((port) => (runs.server === undefined ? void runs.waiting.push(port) : runs.server.accept(port)));
  return runs;
}

/** A classic script is nobody's import, and would run once more as a module. */
function isModule(): boolean {
  const { importScripts } = globalThis as { importScripts?: () => void };
  try {
    importScripts?.();
    return false;
  } catch {
    return true;
  }
}

/** Resolves when the script that this code is in has run once more, or is the one that others import. */
function imported(): Promise<unknown> {
  const again = import(/* @vite-ignore */ /* webpackIgnore: true */ import.meta.url).catch(() => undefined);
  return Promise.race([again, systemClock.after(AGAIN_MS)]);
}
