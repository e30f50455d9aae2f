import { EventType, type BaseEvent } from "@ag-ui/client";
import { firstValueFrom } from "rxjs";
import { expect, onTestFinished, test, vi } from "vitest";
import { createEncryptionKey, Encryption, type EncryptionOptions } from "ag-ui-local-runtime/encryption";
import { connectRuntime, type RuntimeConnection } from "../../../src/client/connect-runtime.js";
import { RunnerError } from "../../../src/run/errors.js";
import type { RuntimeStatus } from "../../../src/wire/shapes.js";
import type { AgentRuntimeOptions } from "../../../src/runtime/options.js";
import { IndexedDBAgentRunner } from "../../../src/runner/indexeddb-agent-runner.js";
import { KeyRing } from "../../../src/storage/encryption/key-ring.js";
import { serveRuntime } from "../../../src/worker/serve-runtime.js";
import { cheapPassphrases } from "../encryption/cheap-passphrases.js";
import { agentOf, freshDb } from "../runner/kit.js";

cheapPassphrases();

const says = agentOf(async function* (input) {
  const messageId = `a-${input.runId}`;
  yield { type: EventType.TEXT_MESSAGE_START, messageId, role: "assistant" } as BaseEvent;
  yield { type: EventType.TEXT_MESSAGE_CONTENT, messageId, delta: "an answer" } as BaseEvent;
  yield { type: EventType.TEXT_MESSAGE_END, messageId } as BaseEvent;
});

function serve(options: Partial<AgentRuntimeOptions> = {}) {
  const host = serveRuntime({ dbName: freshDb(), encryption: {}, agents: { says }, ...options });
  onTestFinished(() => host.close());
  return {
    tab: () => {
      const runtime = connectRuntime({ hosts: { page: async () => host.connect() } });
      onTestFinished(() => runtime.close());
      let status: RuntimeStatus = { is: "connecting" };
      runtime.status$.subscribe((now) => (status = now));
      const is = (wanted: string) =>
        vi.waitFor(() => expect(status.is === "connected" && (status.encryption ?? "none")).toBe(wanted));
      return { runtime, is, status: () => status };
    },
  };
}

const run = async (runtime: RuntimeConnection, threadId = "thread") => {
  const agent = runtime.agent("says", { threadId });
  agent.addMessage({ id: crypto.randomUUID(), role: "user", content: "a question" });
  await agent.runAgent();
  return agent;
};
const titles = async (runtime: RuntimeConnection) => (await runtime.threads.list()).map(({ title }) => title);

test("a key made by createEncryptionKey unlocks what it has locked, and no other one does", async () => {
  const { tab } = serve();
  const { runtime, is } = tab();
  await is("new");
  const [key, other] = await Promise.all([createEncryptionKey(), createEncryptionKey()]);
  await runtime.encryption.unlock(key);
  await run(runtime);
  await runtime.encryption.lock();
  await is("locked");
  await expect(titles(runtime)).rejects.toMatchObject({ code: "locked" });
  await expect(runtime.encryption.unlock(other)).rejects.toMatchObject({ code: "wrong-key" });
  await runtime.encryption.unlock(key);
  expect(await titles(runtime)).toEqual(["a question"]);
});

test.each([
  ["an empty passphrase", ""],
  ["no key", undefined],
  ["an object", {}],
])("%s is refused, and says what a key is", async (_, key) => {
  const { tab } = serve();
  const { runtime, is } = tab();
  await is("new");
  // As untyped callers may.
  await expect(runtime.encryption.unlock(key as string)).rejects.toMatchObject({ code: "invalid-input" });
  await is("new");
});

test("a key that may only encrypt is refused", async () => {
  const { tab } = serve();
  const { runtime } = tab();
  const key = await crypto.subtle.generateKey({ name: "AES-GCM", length: 256 }, false, ["encrypt", "decrypt"]);
  await expect(runtime.encryption.unlock(key)).rejects.toThrow(/createEncryptionKey/);
});

test("a middleware sees that somebody locks and unlocks, may refuse it, and sees nothing of the key", async () => {
  const seen: string[] = [];
  let refuses = false;
  const { tab } = serve({
    beforeRequestMiddleware: async ({ request, path, resolved }) => {
      seen.push(`${String(resolved.route)} ${path} ${await request.clone().text()}`);
      if (refuses && path.endsWith("lock")) throw new Response("no", { status: 403 });
    },
  });
  const { runtime, is } = tab();
  await is("new");
  refuses = true;
  await expect(runtime.encryption.unlock("planted")).rejects.toMatchObject({ code: "refused" });
  refuses = false;
  await runtime.encryption.unlock("planted");
  await runtime.encryption.changeKey("planted", "another");
  await runtime.encryption.lock();
  expect(seen.join("\n")).not.toMatch(/planted|another/);
  expect(new Set(seen.map((line) => line.split(" ")[0]))).toEqual(
    new Set(["encryption/unlock", "encryption/change-key", "encryption/lock"]),
  );
});

test.each<[string, EncryptionOptions | Encryption]>([
  ["options", { key: "correct horse" }],
  ["a function that gives it", { key: () => Promise.resolve("correct horse") }],
  ["an Encryption", new Encryption({ key: "correct horse" })],
])("a host that was given its key needs none from a tab: %s", async (_, encryption) => {
  const { tab } = serve({ encryption });
  const { runtime, is } = tab();
  await is("unlocked");
  await run(runtime);
  expect(await titles(runtime)).toEqual(["a question"]);
});

test("a host whose key is wrong says so, and takes the right one", async () => {
  const dbName = freshDb();
  const first = serve({ dbName, encryption: { key: "right" } }).tab();
  await first.is("unlocked");
  await run(first.runtime);
  const { runtime, is, status } = serve({ dbName, encryption: { key: "wrong" } }).tab();
  await is("locked");
  expect(status()).toMatchObject({ error: { code: "wrong-key" } });
  await expect(titles(runtime)).rejects.toMatchObject({ code: "wrong-key" });
  await runtime.encryption.unlock("right");
  await is("unlocked");
  expect(await titles(runtime)).toEqual(["a question"]);
});

test("what is locked in one host is locked in the others", async () => {
  const dbName = freshDb();
  const [one, two] = [serve({ dbName }).tab(), serve({ dbName }).tab()];
  await one.is("new");
  await one.runtime.encryption.unlock("correct horse");
  await two.runtime.encryption.unlock("correct horse");
  await run(one.runtime);
  expect(await titles(two.runtime)).toEqual(["a question"]);
  await two.runtime.encryption.lock();
  for (const { is } of [one, two]) await is("locked");
  await expect(titles(one.runtime)).rejects.toMatchObject({ code: "locked" });
});

test("locking what nobody has unlocked is over at once", async () => {
  const { runtime, is } = serve().tab();
  await is("new");
  await runtime.encryption.lock();
  await is("new");
  await runtime.encryption.unlock("correct horse");
  await runtime.encryption.lock();
  await is("locked");
  await runtime.encryption.lock();
  await is("locked");
});

test("the key is forgotten also where the ends of runs cannot be written", async () => {
  const encryption = new Encryption();
  const { runtime, is } = serve({ encryption }).tab();
  await is("new");
  await runtime.encryption.unlock("correct horse");
  await run(runtime);
  const closing = vi.spyOn(IndexedDBAgentRunner.prototype, "close").mockRejectedValue(new Error("no disk"));
  onTestFinished(() => closing.mockRestore());
  await expect(runtime.encryption.lock()).resolves.toBeUndefined();
  expect(closing).toHaveBeenCalled();
  await is("locked");
  await expect(titles(runtime)).rejects.toMatchObject({ code: "locked" });
});

test("where it cannot be counted that it was locked, all hosts and tabs forget the key, and the error is told (L10)", async () => {
  const dbName = freshDb();
  const [one, two] = [serve({ dbName }).tab(), serve({ dbName }).tab()];
  await one.is("new");
  for (const { runtime } of [one, two]) await runtime.encryption.unlock("correct horse");
  await run(one.runtime);
  const counting = vi.spyOn(KeyRing.prototype, "countLock").mockRejectedValue(new RunnerError("quota-exceeded"));
  onTestFinished(() => counting.mockRestore());
  await expect(one.runtime.encryption.lock()).rejects.toMatchObject({ code: "quota-exceeded" });
  for (const { is, runtime } of [one, two]) {
    await is("locked");
    await expect(titles(runtime)).rejects.toMatchObject({ code: "locked" });
  }
});

test("a database that cannot be opened keeps no key from being forgotten", async () => {
  const encryption = new Encryption();
  const { runtime, is } = serve({ encryption }).tab();
  await is("new");
  await runtime.encryption.unlock("correct horse");
  const opening = vi
    .spyOn(IndexedDBAgentRunner.prototype, "opened", "get")
    .mockImplementation(() => Promise.reject(new RunnerError("storage-lost")));
  onTestFinished(() => opening.mockRestore());
  await expect(runtime.encryption.lock()).rejects.toMatchObject({ code: "storage-lost" });
  expect(await firstValueFrom(encryption.unlocked$)).toBe(false);
});

test("the worker's own code locks and unlocks it", async () => {
  const encryption = new Encryption();
  const { runtime, is } = serve({ encryption }).tab();
  await is("new");
  await encryption.unlock("correct horse");
  await is("unlocked");
  await run(runtime);
  await encryption.lock();
  await is("locked");
  await expect(titles(runtime)).rejects.toMatchObject({ code: "locked" });
});

test("followers, lists and waiting runs go on by themselves when somebody unlocks it", async () => {
  const dbName = freshDb();
  const first = serve({ dbName }).tab();
  await first.is("new");
  await first.runtime.encryption.unlock("correct horse");
  await run(first.runtime);
  await first.runtime.encryption.lock();
  const { runtime, is } = serve({ dbName }).tab();
  await is("locked");
  const agent = runtime.agent("says", { threadId: "thread" });
  const unfollow = agent.follow();
  onTestFinished(unfollow);
  const changes: string[] = [];
  runtime.threads.watch().subscribe({ next: ({ type }) => changes.push(type), error: () => changes.push("error") });
  await expect(agent.connectAgent()).rejects.toMatchObject({ code: "locked" });
  await runtime.encryption.unlock("correct horse");
  await vi.waitFor(() => expect(agent.messages.map(({ role }) => role)).toEqual(["user", "assistant"]));
  await run(runtime, "another");
  await vi.waitFor(() => expect(changes).toContain("changed"));
  expect(changes).not.toContain("error");
});

test("whoever changes the key of a locked database unlocks it, and the new key goes on unlocking it (L13)", async () => {
  const { tab } = serve();
  const [one, two] = [tab(), tab()];
  await one.is("new");
  await one.runtime.encryption.unlock("old");
  await run(one.runtime);
  await one.runtime.encryption.lock();
  await two.is("locked");
  await one.runtime.encryption.changeKey("old", "new");
  for (const { is, runtime } of [one, two]) {
    await is("unlocked");
    expect(await titles(runtime)).toEqual(["a question"]);
  }
  await two.runtime.encryption.unlock("new");
  await one.runtime.encryption.changeKey("old", "new");
});

test("an unlock that a tab repeats, since its link ended before the answer, undoes no lock", async () => {
  let isHeld: (() => void) | undefined;
  let unlocks = 0;
  const { tab } = serve({
    beforeRequestMiddleware: async ({ path }) => {
      if (path.endsWith("/unlock") && ++unlocks === 2) await new Promise<void>((resolve) => (isHeld = resolve));
    },
  });
  const [one, two] = [tab(), tab()];
  await one.is("new");
  await two.is("new");
  const unlocking = one.runtime.encryption.unlock("correct horse");
  unlocking.catch(() => undefined);
  await vi.waitFor(() => expect(isHeld).toBeDefined());
  await two.is("unlocked");
  await two.runtime.encryption.lock();
  isHeld!();
  await expect(unlocking).rejects.toMatchObject({ code: "locked" });
  for (const { is } of [one, two]) await is("locked");
  await one.runtime.encryption.unlock("correct horse");
  await one.is("unlocked");
});

test("a lock that a tab repeats, since its link ended before the answer, locks out nobody who has unlocked it since", async () => {
  let isHeld: (() => void) | undefined;
  let locks = 0;
  const { tab } = serve({
    beforeRequestMiddleware: async ({ path }) => {
      if (path.endsWith("/lock") && ++locks === 2) await new Promise<void>((resolve) => (isHeld = resolve));
    },
  });
  const [one, two] = [tab(), tab()];
  await one.is("new");
  await one.runtime.encryption.unlock("correct horse");
  await two.is("unlocked");
  const locking = one.runtime.encryption.lock();
  await vi.waitFor(() => expect(isHeld).toBeDefined());
  await two.is("locked");
  await two.runtime.encryption.unlock("correct horse");
  isHeld!();
  await locking;
  for (const { is, runtime } of [one, two]) {
    await is("unlocked");
    expect(await titles(runtime)).toEqual([]);
  }
  // The next sign-out is another one.
  await one.runtime.encryption.lock();
  for (const { is } of [one, two]) await is("locked");
});

test("where the browser stores nothing, unlocking costs no thread in memory, and is over (L13)", async () => {
  const opening = vi.spyOn(indexedDB, "open").mockImplementation(() => {
    throw new DOMException("no storage", "UnknownError");
  });
  onTestFinished(() => opening.mockRestore());
  const { tab } = serve({ memoryFallback: true });
  const { runtime, is } = tab();
  await is("none");
  await run(runtime);
  await runtime.encryption.unlock("correct horse");
  expect(await titles(runtime)).toEqual(["a question"]);
});

test("a message that came when it was locked is the caller's, and a waiting one is refused, too", async () => {
  const { runtime, is } = serve().tab();
  await is("new");
  const agent = runtime.agent("says", { threadId: "thread" });
  agent.addMessage({ id: "u", role: "user", content: "a question" });
  await expect(agent.runAgent()).rejects.toMatchObject({ code: "locked" });
  await expect(agent.runAgent({ onBusy: "queue" })).rejects.toMatchObject({ code: "locked" });
  await runtime.encryption.unlock("correct horse");
  await agent.runAgent();
  expect(agent.messages.map(({ content }) => content)).toEqual(["a question", "an answer"]);
});

test("a host that encrypts nothing has nothing to unlock", async () => {
  const host = serveRuntime({ dbName: freshDb(), agents: { says } });
  onTestFinished(() => host.close());
  const runtime = connectRuntime({ hosts: { page: async () => host.connect() } });
  onTestFinished(() => runtime.close());
  await expect(runtime.encryption.unlock("a key")).rejects.toThrow(/serveRuntime/);
  await expect(runtime.encryption.lock()).rejects.toMatchObject({ code: "invalid-input" });
});
