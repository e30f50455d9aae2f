import { firstValueFrom, filter } from "rxjs";
import { expect, onTestFinished, test } from "vitest";
import { connectRuntime } from "../../../src/client/connect-runtime.js";
import { defaultLocks } from "../../../src/platform/locks.js";
import { hostLifeLockName } from "../../../src/platform/names.js";
import { PROTOCOL_VERSION } from "../../../src/wire/shapes.js";

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
