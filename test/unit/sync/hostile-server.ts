import { MemoryServer } from "./memory-space.js";

export type Stored = MemoryServer["entries"][number];

export const flipped = (body: Uint8Array, at: number): Uint8Array =>
  body.map((byte, index) => (index === at % body.length ? byte ^ 1 : byte));
/** What a server puts after an entry, and in which threads. @param all those of devices */
export type Injects = (entry: Stored, all: readonly Stored[]) => (readonly [thread: string, body: Uint8Array])[];

/** Adds something of its own after each entry of a device. */
export class HostileServer extends MemoryServer {
  constructor(private readonly injects: Injects) {
    super();
  }

  override add(thread: string, body: Uint8Array, last: number, id: string): number | undefined {
    const count = this.entries.length;
    const seq = super.add(thread, body, last, id);
    if (seq === undefined || this.entries.length === count) return seq;
    const honest = this.entries.filter((entry) => !entry.id.startsWith("hostile"));
    for (const [to, its] of this.injects(this.entries.at(-1)!, honest)) {
      const next = this.last + 1;
      this.entries.push({ thread: to, seq: next, id: `hostile ${next}`, body: its });
    }
    this.bell.ring();
    return seq;
  }
}
