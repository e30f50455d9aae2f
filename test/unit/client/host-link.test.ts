import { firstValueFrom, filter, lastValueFrom, toArray } from "rxjs";
import { expect, onTestFinished, test } from "vitest";
import { connectRuntime } from "../../../src/client/connect-runtime.js";
import { startHost } from "../../../src/client/start-host.js";
import { systemClock } from "../../../src/platform/clock.js";
import { defaultLocks, type Lives } from "../../../src/platform/locks.js";
import { hostLifeLockName } from "../../../src/platform/names.js";
import { PROTOCOL_VERSION } from "../../../src/wire/shapes.js";

/** The time of a host that takes the place of one that died, in ms. */
const SHARE_MS = 250;

/** A host that says what it is told to, and nothing more. */
function hostThatSays(word: object, withPort = true): () => Promise<MessagePort> {
  return () => {
    const { port1, port2 } = new MessageChannel();
    const api = new MessageChannel();
    port1.postMessage(withPort ? { ...word, port: api.port2 } : word, withPort ? [api.port2] : []);
    onTestFinished(() => {
      port1.close();
      api.port1.close();
    });
    return Promise.resolve(port2);
  };
}

const hello = {
  type: "hello",
  protocol: PROTOCOL_VERSION,
  hostId: "mute",
  bootId: "1",
  dbName: "db",
  kind: "page",
  agents: [],
};

test("a host that says hello and then answers nothing is told in time; no call hangs (L13)", async () => {
  const life = await defaultLocks()!.hold(hostLifeLockName("db", "mute"));
  onTestFinished(() => life.release());
  const runtime = connectRuntime({ hosts: { page: hostThatSays(hello) }, callTimeoutMs: 20 });
  onTestFinished(() => runtime.close());
  await expect(runtime.threads.list()).rejects.toMatchObject({ code: "timeout" });
  const failed = await firstValueFrom(runtime.status$.pipe(filter((status) => status.is === "failed")));
  expect(failed).toMatchObject({ error: { code: "timeout" } });
  await expect(runtime.agent("a", { threadId: "t" }).runAgent()).rejects.toMatchObject({ code: "timeout" });
});

test("the status of a closed connection is told to who comes after its end, too", async () => {
  const runtime = connectRuntime({ hosts: { page: hostThatSays(hello) } });
  const statuses = () => lastValueFrom(runtime.status$.pipe(toArray()));
  const before = statuses();
  await runtime.close();
  expect(await before).toEqual([{ is: "connecting" }, { is: "closed" }]);
  expect(await statuses()).toEqual([{ is: "closed" }]);
});

test("a host of another protocol is refused with what to do", async () => {
  const other = { ...hello, protocol: PROTOCOL_VERSION + 1 };
  const runtime = connectRuntime({ hosts: { page: hostThatSays(other) } });
  onTestFinished(() => runtime.close());
  await expect(runtime.threads.list()).rejects.toMatchObject({
    code: "protocol-mismatch",
    details: { host: PROTOCOL_VERSION + 1, tab: PROTOCOL_VERSION },
  });
});

test("foreign words are no hello: the host is silent, and no other can be started", async () => {
  const runtime = connectRuntime({
    hosts: { page: hostThatSays({ type: "hello", hostId: 7 }, false) },
    startTimeoutMs: 20,
  });
  onTestFinished(() => runtime.close());
  await expect(runtime.threads.list()).rejects.toMatchObject({
    code: "no-host",
    details: { causes: ["page: said nothing for 20 ms"] },
  });
});

test("hosts that cannot be started are named, in their order", async () => {
  const fails = (why: string) => () => {
    throw new Error(why);
  };
  const runtime = connectRuntime({ hosts: { shared: fails("one"), dedicated: fails("two") } });
  onTestFinished(() => runtime.close());
  await expect(runtime.threads.list()).rejects.toMatchObject({
    code: "no-host",
    details: { causes: ["shared-worker: Error: one", "worker: Error: two"] },
  });
});

test("a host that retires and never ends is not waited for without end; the next kind is tried (L13)", async () => {
  const life = await defaultLocks()!.hold(hostLifeLockName("db", "hung"));
  onTestFinished(() => life.release());
  const shared = (): SharedWorker => {
    const { port1, port2 } = new MessageChannel();
    onTestFinished(() => [port1, port2].forEach((port) => port.close()));
    port1.postMessage({ type: "retiring", hostId: "hung", dbName: "db" });
    return Object.assign(new EventTarget(), { port: port2, onerror: null });
  };
  const { signal } = new AbortController();
  const started = await startHost({ shared, page: hostThatSays(hello) }, 1_000, defaultLocks()!, signal);
  expect(started.kind).toBe("page");
  await expect(startHost({ shared }, 1_000, defaultLocks()!, signal)).rejects.toMatchObject({
    code: "no-host",
    details: { causes: ["shared-worker: retires, and did not end within 1000 ms"] },
  });
});

test("a host that takes its time to retire is followed by one of the same name (L13)", async () => {
  const life = await defaultLocks()!.hold(hostLifeLockName("db", "slow"));
  const asked: string[] = [];
  const waited: Lives = {
    hold: (name) => defaultLocks()!.hold(name),
    whenFree: async (name, signal) => {
      // It ends when a replacement that says nothing would be given up, and before one that retires is.
      void systemClock.after(1.5 * SHARE_MS, signal).then(() => life.release());
      return defaultLocks()!.whenFree(name, signal);
    },
  };
  const shared = (name: string): SharedWorker => {
    asked.push(name);
    const { port1, port2 } = new MessageChannel();
    const api = new MessageChannel();
    onTestFinished(() => [port1, port2, api.port1].forEach((port) => port.close()));
    if (asked.length === 1) port1.postMessage({ type: "retiring", hostId: "slow", dbName: "db" });
    // It answers later than a host does that has no time left.
    else void systemClock.after(20).then(() => port1.postMessage({ ...hello, port: api.port2 }, [api.port2]));
    return Object.assign(new EventTarget(), { port: port2, onerror: null });
  };
  const { signal } = new AbortController();
  await startHost({ shared }, 3 * SHARE_MS, waited, signal, true);
  expect(asked.length).toBe(2);
  expect(asked[1]).toBe(asked[0]);
});

/** SharedWorkers by name: the first of them take connections and never answer. */
function sharedWorkers(silent: number): { readonly asked: string[]; readonly shared: (name: string) => SharedWorker } {
  const asked: string[] = [];
  const shared = (name: string): SharedWorker => {
    if (!asked.includes(name)) asked.push(name);
    const { port1, port2 } = new MessageChannel();
    const api = new MessageChannel();
    onTestFinished(() => [port1, port2, api.port1].forEach((port) => port.close()));
    if (asked.indexOf(name) >= silent) port1.postMessage({ ...hello, port: api.port2 }, [api.port2]);
    // What is used of one.
    return Object.assign(new EventTarget(), { port: port2, onerror: null });
  };
  return { asked, shared };
}

test("where a SharedWorker never answers, one of another name is started, and asked first from then on (L13)", async () => {
  const life = await defaultLocks()!.hold(hostLifeLockName("db", "mute"));
  onTestFinished(() => life.release());
  const { asked, shared } = sharedWorkers(2);
  const startTimeoutMs = 1_000;
  const signal = new AbortController().signal;
  let workers = shared;
  const factories = { shared: (name: string) => workers(name) };
  const first = await startHost(factories, startTimeoutMs, defaultLocks()!, signal);
  expect(first.hello.hostId).toBe("mute");
  expect(asked.length).toBe(3);
  expect(new Set(asked).size).toBe(3);
  const before = [...asked];
  const again = sharedWorkers(0);
  workers = again.shared;
  await startHost(factories, startTimeoutMs, defaultLocks()!, signal);
  expect(again.asked).toEqual([before[2]]);
  // Another runtime of the page has workers of its own.
  const other = sharedWorkers(0);
  await startHost({ shared: other.shared }, startTimeoutMs, defaultLocks()!, signal);
  expect(other.asked).toEqual([before[0]]);
});

test("a factory that takes no name is asked once, and what it says of its failure is told once", async () => {
  let asked = 0;
  const shared = (): SharedWorker => {
    asked++;
    throw new TypeError("no such thing here");
  };
  const { signal } = new AbortController();
  await expect(startHost({ shared }, 20, defaultLocks()!, signal)).rejects.toMatchObject({
    code: "no-host",
    details: { causes: ["shared-worker: TypeError: no such thing here"] },
  });
  const named = (_name: string): SharedWorker => shared();
  await expect(startHost({ shared: named }, 20, defaultLocks()!, signal)).rejects.toMatchObject({ code: "no-host" });
  expect(asked).toBe(2);
});
