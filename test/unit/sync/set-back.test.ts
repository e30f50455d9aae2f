import { expect, onTestFinished, test } from "vitest";
import { Encryption } from "../../../src/storage/encryption/encryption.js";
import type { SpaceFrame, SpacePlace } from "../../../src/sync/space.js";
import { fastKey } from "../encryption/fast-key.js";
import { agentOf, counter, freshDb } from "../runner/kit.js";
import { device, deviceOn, eventually, inStep, MemoryServer, same, say, tree } from "./kit.js";
import { MemorySpace } from "./memory-space.js";

/** It says by its marks which entry stands where, as a space must. */
class MarkingSpace extends MemorySpace {
  override async *read(after: SpacePlace | undefined, signal: AbortSignal): AsyncGenerator<SpaceFrame, void> {
    const markAt = (seq: number) => this.server.entries.find((entry) => entry.seq === seq)?.id;
    const isOther = after?.mark !== undefined && after.mark !== markAt(after.seq);
    for await (const frame of super.read(after, signal)) {
      if (frame.is === "begins") yield isOther ? { ...frame, last: Math.min(frame.last, after.seq - 1) } : frame;
      else yield { ...frame, mark: markAt(frame.seq) };
    }
  }
}

test.each([false, true])(
  "a log that was set back, and has got as much since, is read anew (encrypted: %s)",
  async (isEncrypted) => {
    const options = isEncrypted ? () => ({ encryption: new Encryption({ key: fastKey }) }) : () => ({});
    const server = new MemoryServer();
    const phone = device(server, "Phone", options());
    await inStep(phone);
    await say(phone, "t", "r1", agentOf(counter(1)));
    await eventually(async () => expect((await phone.database.get("place"))?.seq).toBe(server.last));
    await inStep(phone);
    const dbName = freshDb();
    const laptop = deviceOn(new MarkingSpace(server), "Laptop", { dbName, ...options() });
    await inStep(laptop);
    await same("t", laptop, phone);
    const backup = server.entries.slice();
    await phone.close();
    await say(laptop, "t", "lost", agentOf(counter(1)));
    await eventually(async () => expect((await laptop.database.get("place"))?.seq).toBe(server.last));
    const { last } = server;
    expect(await laptop.database.get("place")).toMatchObject({ mark: server.entries.at(-1)?.id });
    await laptop.close();
    server.entries = backup;
    const tablet = device(server, "Tablet", options());
    await inStep(tablet);
    for (let n = 0; server.last <= last; n++) await say(tablet, "u", `u${n}`, agentOf(counter(1)));
    const again = deviceOn(new MarkingSpace(server), "Laptop", { dbName, ...options() });
    onTestFinished(again.close);
    await eventually(async () => expect(Object.keys(await tree(tablet, "t"))).toEqual(["lost", "r1"]));
    await eventually(async () => expect(await tree(again, "u")).toEqual(await tree(tablet, "u")));
    expect(await tree(again, "t")).toEqual(await tree(tablet, "t"));
  },
);
