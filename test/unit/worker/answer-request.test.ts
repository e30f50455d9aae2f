import { expect, onTestFinished, test, vi } from "vitest";
import { defaultLocks } from "../../../src/platform/locks.js";
import { serviceWorkerLifeLockName } from "../../../src/platform/names.js";
import { answering, openBody } from "../client/fetch-kit.js";

/** A request of a service worker that reads nothing and says nothing, in the hands of a host. */
async function asked(serviceWorkerId: string) {
  const life = await defaultLocks()!.hold(serviceWorkerLifeLockName(serviceWorkerId));
  const { stream, cancelled } = openBody();
  const { runtime, replace } = answering(async () => new Response(stream));
  const { port1, port2 } = new MessageChannel();
  const frames: unknown[] = [];
  port1.onmessage = ({ data }) => void frames.push(data);
  onTestFinished(async () => {
    port1.close();
    await life.release();
  });
  const request = { url: "http://site.test/", method: "GET", headers: [], basePath: "", serviceWorkerId };
  await runtime.relay(request, port2);
  await vi.waitFor(() => expect(frames).toContainEqual(expect.objectContaining({ type: "body" })));
  return { life, runtime, replace, frames, cancelled };
}

test("what a service worker has asked for ends with it (L14)", async () => {
  const { life, cancelled } = await asked("ends");
  expect(cancelled()).toBe(false);
  await life.release();
  await vi.waitFor(() => expect(cancelled()).toBe(true));
});

test("what a service worker has asked for ends when the host lets go of its tabs (L14)", async () => {
  const { replace, frames, cancelled } = await asked("stays");
  await replace();
  await vi.waitFor(() => expect(cancelled()).toBe(true));
  await vi.waitFor(() => expect(frames.at(-1)).toMatchObject({ type: "error", error: { code: "host-lost" } }));
});

test("a request that is none is refused, and its port is of no use", async () => {
  const { runtime } = answering(async () => new Response());
  const { port1, port2 } = new MessageChannel();
  onTestFinished(() => port1.close());
  const request = { url: "nowhere", method: "GET", headers: [], basePath: "" };
  await expect(runtime.relay(request, port2)).rejects.toMatchObject({ code: "invalid-input" });
});
