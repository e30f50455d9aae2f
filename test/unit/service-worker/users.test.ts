import { beforeAll, describe, expect, onTestFinished, test, vi } from "vitest";
import { RELAY_MESSAGE } from "../../../src/platform/names.js";
import { RunnerError } from "../../../src/run/errors.js";
import { RELAY_PROTOCOL } from "../../../src/wire/service-worker-words.js";
import { answering } from "../client/fetch-kit.js";
import { FakePage, serviceWorkerOf } from "./kit.js";

beforeAll(() => {
  vi.stubGlobal("location", { origin: "http://site.test", href: "http://site.test/" });
  return () => vi.unstubAllGlobals();
});

/** A page of a user, or of none, whose host answers with its id. */
function pageOf(id: string, user?: string): FakePage {
  const { runtime } = answering(async () => new Response(id));
  const page = new FakePage(id);
  page.answer({ ...runtime, ...(user !== undefined && { user }) });
  return page;
}

/** A page of a user that has no host. */
function hostless(id: string, user?: string): FakePage {
  const page = new FakePage(id);
  page.answer({ relay: () => Promise.reject(new RunnerError("no-host")), ...(user !== undefined && { user }) });
  return page;
}

const textOf = async (response: Promise<Response> | undefined): Promise<unknown> => {
  const answer = (await response)!;
  return answer.ok ? answer.text() : [answer.status, ((await answer.json()) as { error: unknown }).error];
};

const NO_HOST = [503, "no-host"];

describe("a page's request", () => {
  test("is answered by its own host, whichever others there are", async () => {
    const worker = serviceWorkerOf(pageOf("of bob", "bob"), pageOf("of ada", "ada"), pageOf("of none"));
    for (const id of ["of ada", "of bob", "of none"])
      expect(await textOf(worker.fetch("/api", {}, id).response)).toBe(id);
  });

  test("is answered by another page only where that is of the same user", async () => {
    const others = [pageOf("of bob", "bob"), pageOf("of none")];
    const asking = hostless("asking", "ada");
    expect(await textOf(serviceWorkerOf(...others, asking).fetch("/api", {}, "asking").response)).toEqual(NO_HOST);
    const worker = serviceWorkerOf(...others, asking, pageOf("of ada", "ada"));
    expect(await textOf(worker.fetch("/api", {}, "asking").response)).toBe("of ada");
  });

  test("that names no user, or says nothing, is of none", async () => {
    for (const asking of [hostless("asking"), new FakePage("asking")]) {
      expect(
        await textOf(serviceWorkerOf(asking, pageOf("of ada", "ada")).fetch("/api", {}, "asking").response),
      ).toEqual(NO_HOST);
      const worker = serviceWorkerOf(asking, pageOf("of ada", "ada"), pageOf("of none"));
      expect(await textOf(worker.fetch("/api", {}, "asking").response)).toBe("of none");
    }
  });

  test("whose page is gone, or a worker's own, is of none", async () => {
    const worker = serviceWorkerOf(pageOf("of ada", "ada"));
    expect(await textOf(worker.fetch("/api", {}, "a worker").response)).toEqual(NO_HOST);
  });

  test("stays its user's when its host dies and its page goes", async () => {
    const never = (): Promise<never> => new Promise(() => undefined);
    const handle = vi.fn<() => Promise<Response>>(never);
    const { runtime, replace } = answering(handle);
    const asking = new FakePage("asking");
    asking.answer({ ...runtime, user: "ada" });
    const worker = serviceWorkerOf(asking, pageOf("of none"));
    const { response } = worker.fetch("/api", {}, "asking");
    await vi.waitFor(() => expect(handle).toHaveBeenCalled());
    worker.close(asking);
    await replace();
    expect(await textOf(response)).toEqual(NO_HOST);
  });
});

describe("a request without a page", () => {
  test("is answered where all pages are of one user, those that say nothing left out", async () => {
    const worker = serviceWorkerOf(new FakePage("silent"), hostless("other", "ada"), pageOf("of ada", "ada"));
    expect(await textOf(worker.fetch("/api").response)).toBe("of ada");
  });

  test("is refused where pages are of several, or of one and of none", async () => {
    for (const other of [pageOf("of bob", "bob"), pageOf("of none")]) {
      const worker = serviceWorkerOf(pageOf("of ada", "ada"), other);
      expect(await textOf(worker.fetch("/api", {}, "", "navigate").response)).toEqual([503, "wrong-user"]);
    }
  });

  test("is a navigation also where the browser names the page that is left", async () => {
    const left = new FakePage("left");
    const worker = serviceWorkerOf(left, pageOf("of ada", "ada"));
    expect(await textOf(worker.fetch("/api", {}, "left", "navigate").response)).toBe("of ada");
  });
});

test("a page of a user takes no request of a service worker that knows of no users, or names another one", async () => {
  for (const [named, taken] of [
    [{}, false],
    [{ user: "bob" }, false],
    [{ user: "ada" }, true],
  ] as const) {
    const relay = vi.fn(() => Promise.resolve({ hostId: "h", dbName: "db" }));
    const page = new FakePage("page");
    page.answer({ relay, user: "ada" });
    const { port1, port2 } = new MessageChannel();
    const answer = new MessageChannel();
    onTestFinished(() => [port1, answer.port1, answer.port2].forEach((port) => port.close()));
    const said: string[] = [];
    const over = new Promise<void>((resolve) => {
      port1.onmessage = ({ data }: MessageEvent<{ type: string; user?: string }>) => {
        said.push(data.type);
        if (data.type === "heard") expect(data.user).toBe("ada");
        else resolve();
      };
    });
    page.hear({ type: RELAY_MESSAGE, v: RELAY_PROTOCOL, words: port2 });
    port1.postMessage({ request: {}, port: answer.port2, ...named }, [answer.port2]);
    await over;
    expect([said, relay.mock.calls.length]).toEqual([["heard", taken ? "taken" : "refused"], taken ? 1 : 0]);
  }
});

test("a page that closes its connection answers for its next user only", async () => {
  const page = new FakePage("page");
  const before = answering(async () => new Response("of ada"));
  page.answer({ ...before.runtime, user: "ada" });
  await before.runtime.close();
  page.answer({ ...answering(async () => new Response("of bob")).runtime, user: "bob" });
  const worker = serviceWorkerOf(page, pageOf("of ada", "ada"));
  expect(await textOf(worker.fetch("/api", {}, "page").response)).toBe("of bob");
});
