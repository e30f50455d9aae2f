import { afterEach, expect, test, vi } from "vitest";
import type { Server } from "../../../src/worker/one-run.js";
import type { RawPort } from "../../../src/worker/tab-connection.js";

/*
 * In WebKit a module worker's script runs once more as soon as anything imports it, with modules of its own: here the file
 * that would be in it is loaded anew.
 */

const RUNS = Symbol.for("ag-ui-local-runtime.runs");

afterEach(() => {
  Reflect.deleteProperty(globalThis, RUNS);
  vi.unstubAllGlobals();
});

/** One run of the script. */
async function runOf(name: string, worker: { accept?: (port: RawPort) => void; listens: number; served: string[] }) {
  vi.resetModules();
  const { serveOnce } = await import("../../../src/worker/one-run.js");
  const listen = (accept: (port: RawPort) => void): void => {
    worker.listens++;
    worker.accept = accept;
  };
  const serve = (): Server => {
    worker.served.push(`${name} serves`);
    return {
      accept: (port) => worker.served.push(`${name}: ${String(port)}`),
      close: async () => void worker.served.push(`${name} closes`),
    };
  };
  return () => serveOnce(listen, serve);
}

const port = (name: string): RawPort => name as unknown as RawPort; // only told who has it

test("of two runs of a module worker's script the later one serves, and has the ports of both", async () => {
  vi.stubGlobal("importScripts", () => {
    throw new TypeError("Module scripts have none");
  });
  const worker: Parameters<typeof runOf>[1] = { listens: 0, served: [] };
  const [first, second, third] = [
    await runOf("first", worker),
    await runOf("second", worker),
    await runOf("third", worker),
  ];
  const one = first();
  worker.accept?.(port("early"));
  const other = second();
  await vi.waitFor(() => expect(worker.served).toEqual(["second serves", "second: early"]));
  worker.accept?.(port("late"));
  one.accept(port("of the first"));
  // Code that is loaded later runs it once more.
  const again = third();
  again.accept(port("of the third"));
  await again.close();
  expect(worker.served.slice(2)).toEqual([
    "second: late",
    "second: of the first",
    "second: of the third",
    "second closes",
  ]);
  expect(worker.listens).toBe(1);
  await other.close();
});

test("a classic script serves at once, and is imported by nobody", async () => {
  vi.stubGlobal("importScripts", () => undefined);
  const worker: Parameters<typeof runOf>[1] = { listens: 0, served: [] };
  (await runOf("only", worker))();
  worker.accept?.(port("a"));
  expect(worker.served).toEqual(["only serves", "only: a"]);
});

test("whoever was closed makes room for the next one", async () => {
  vi.stubGlobal("importScripts", () => undefined);
  const worker: Parameters<typeof runOf>[1] = { listens: 0, served: [] };
  const [first, second] = [await runOf("first", worker), await runOf("second", worker)];
  await first().close();
  worker.accept?.(port("between"));
  second();
  worker.accept?.(port("after"));
  expect(worker.served).toEqual(["first serves", "first closes", "first: between", "second serves", "second: after"]);
  expect(worker.listens).toBe(1);
});
