import { expect, test, vi } from "vitest";
import { inProcessLockManager } from "../../../src/platform/in-process-locks.js";
import { rawOf } from "../storage/raw.js";
import { agentOf, collect, counter, freshDb, inputOf, makeRunner, mortalLocks } from "./kit.js";

test.each([
  ["the first", 0, ""],
  ["a later", 3, "0 "],
])(
  "a dead host's run of which %s chunk is not valid is settled, and the thread goes on with what can be read (L7, L9)",
  async (_which, nth, text) => {
    const dbName = freshDb();
    const manager = inProcessLockManager();
    const { locks, die } = mortalLocks(manager);
    const dying = makeRunner({ dbName, locks });
    let reached!: () => void;
    const atStep = new Promise<void>((resolve) => (reached = resolve));
    // A chunk for each event: the next comes when the one before is committed.
    const gate = async (step: number): Promise<void> => {
      await vi.waitFor(async () => expect((await dying.getRunEvents("r")).length).toBe(step + 2));
      if (step !== 5) return;
      reached();
      await new Promise(() => undefined);
    };
    dying.run({ threadId: "t", agent: agentOf(counter(9, gate)), input: inputOf("t", "r") });
    await atStep;
    const raw = await rawOf(dbName);
    const chunk = (await raw.getAll("chunks"))[nth]!;
    await raw.put("chunks", { ...chunk, count: 0 });
    const survivor = makeRunner({ dbName, locks: mortalLocks(manager).locks });
    await survivor.opened;
    await die();
    await vi.waitFor(async () => expect(await survivor.isRunning({ threadId: "t" })).toBe(false));

    await collect(survivor.run({ threadId: "t", agent: agentOf(counter(2)), input: inputOf("t", "next") }));
    const messages = await survivor.getThreadMessages("t");
    expect(
      messages
        .filter(({ id }) => id === "r-a")
        .map(({ content }) => content)
        .join(""),
    ).toBe(text);
    expect(messages.map(({ id }) => id)).toEqual(expect.arrayContaining(["r-u", "next-u", "next-a"]));
  },
);
