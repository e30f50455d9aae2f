import { describe, expect, test } from "vitest";
import { authentication } from "../../../recipes/authentication.js";
import { authorisation } from "../../../recipes/authorisation.js";
import { inOrder } from "../../../recipes/in-order.js";
import { createRuntimeHandler } from "ag-ui-local-runtime/runtime";
import { inputOf, textOf } from "../../../../test/unit/runner/kit.js";
import { runtimeWith } from "../../../../test/unit/runtime/kit.js";
import { connectedTab, WAYS } from "../../../../test/unit/runtime/ways.js";

const forbidden = { status: 403 };

function guarded(owns = (user: string, threadId: string) => threadId.startsWith(`${user}:`)) {
  return runtimeWith({
    beforeRequestMiddleware: inOrder(
      authentication((token) => token),
      authorisation({
        userOf: (request) => request.headers.get("x-user"),
        mayUse: (user, agentId) => agentId !== "other" || user === "root",
        owns,
      }),
    ),
  });
}

const as = (user: string) => ({ authorization: `Bearer ${user}` });

describe.each(WAYS)("authorisation, $name", (way) => {
  test("lets a user run and read what is theirs", async () => {
    const caller = await way.open(guarded(), as("ada"));
    expect(textOf(await caller.run("counter", inputOf("ada:1", "r")))).toBe("0 1 2 ");
    expect((await caller.connect("counter", "ada:1")).length).toBeGreaterThan(0);
    expect((await caller.messages("ada:1")).length).toBe(2);
    expect(await caller.stop("counter", "ada:1")).toBe(false);
  });

  test("keeps a user from the threads of another", async () => {
    const runtime = guarded();
    await (await way.open(runtime, as("ada"))).run("counter", inputOf("ada:1", "r"));
    const bob = await way.open(runtime, as("bob"));
    await expect(bob.run("counter", inputOf("ada:1", "r2"))).rejects.toMatchObject(forbidden);
    await expect(bob.connect("counter", "ada:1")).rejects.toMatchObject(forbidden);
    await expect(bob.stop("counter", "ada:1")).rejects.toMatchObject(forbidden);
    await expect(bob.messages("ada:1")).rejects.toMatchObject(forbidden);
    await expect(bob.events("ada:1")).rejects.toMatchObject(forbidden);
    await expect(bob.state("ada:1")).rejects.toMatchObject(forbidden);
  });

  test("keeps everybody from what is of all threads", async () => {
    const caller = await way.open(guarded(), as("ada"));
    await expect(caller.list()).rejects.toMatchObject(forbidden);
    await expect(caller.clear()).rejects.toMatchObject(forbidden);
  });

  test("keeps a user from a thread in which an agent has run that is not theirs", async () => {
    const runtime = guarded(() => true);
    await (await way.open(runtime, as("root"))).run("other", inputOf("shared", "r"));
    const ada = await way.open(runtime, as("ada"));
    await expect(ada.connect("counter", "shared")).rejects.toMatchObject(forbidden);
    await expect(ada.messages("shared")).rejects.toMatchObject(forbidden);
    await expect(ada.run("counter", inputOf("shared", "r2"))).rejects.toMatchObject(forbidden);
  });

  test("keeps a user from the agents of others", async () => {
    const runtime = guarded();
    const ada = await way.open(runtime, as("ada"));
    await expect(ada.run("other", inputOf("ada:1", "r"))).rejects.toMatchObject(forbidden);
    const root = await way.open(runtime, as("root"));
    expect(textOf(await root.run("other", inputOf("root:1", "r")))).toBe("the other");
  });
});

test.each(WAYS)("who is called ada has none of the threads of ada.lovelace, $name", async (way) => {
  const runtime = guarded();
  const lovelace = await way.open(runtime, as("ada.lovelace"));
  expect(textOf(await lovelace.run("counter", inputOf("ada.lovelace:1", "r")))).toBe("0 1 2 ");
  const ada = await way.open(runtime, as("ada"));
  await expect(ada.messages("ada.lovelace:1")).rejects.toMatchObject(forbidden);
});

test("a tab cannot read a run by its id alone, and hears of no changes", async () => {
  const tab = connectedTab(guarded(), as("ada"));
  await expect(tab.runner().getRunEvents("r")).rejects.toMatchObject({ code: "refused" });
  await expect(tab.runner().getRun("r")).rejects.toMatchObject({ code: "refused" });
  await expect(new Promise((_, reject) => tab.threads.watch().subscribe({ error: reject }))).rejects.toMatchObject({
    code: "refused",
  });
});

test.each([
  ["GET", "/threads/bob:1", 403],
  ["GET", "/threads/ada:1%2F..%2Fbob:1/messages", 200],
  ["GET", "/threads/%62ob.1/messages", 403],
  ["GET", "/threads/bob:1/messages/", 403],
  ["GET", "//threads/bob:1/messages", 403],
  ["GET", "/threads/", 403],
  ["GET", "/threads/%E0%A4%A/messages", 403],
  ["DELETE", "/threads/bob:1", 403],
  ["POST", "/threads/clear/", 403],
  ["GET", "/info", 200],
])("below a base path %s %s is answered with %i", async (method, path, status) => {
  const handler = createRuntimeHandler({ runtime: guarded(), basePath: "/api" });
  const answer = await handler(new Request(`http://localhost/api${path}`, { method, headers: as("ada") }));
  expect(answer.status).toBe(status);
});

test.each([
  ["GET", "/threads"],
  ["GET", "/threads/"],
  ["POST", "/threads/clear"],
  ["POST", "/threads/clear/"],
  ["POST", "/threads/subscribe"],
  ["GET", "/runs/r"],
  ["POST", "/transcribe"],
  ["GET", "/"],
])("%s %s is no thread, whoever owns everything", async (method, path) => {
  const handler = createRuntimeHandler({ runtime: guarded(() => true) });
  const answer = await handler(new Request(`http://localhost${path}`, { method, headers: as("ada") }));
  expect(answer.status).toBe(403);
});
