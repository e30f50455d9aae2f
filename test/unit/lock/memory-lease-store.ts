import { isSameLease, type Lease, type LeaseStore } from "../../../src/storage/indexeddb/leases.js";
import { RunnerError } from "../../../src/run/errors.js";

/** Leases in one process: stores over the same rows are those of several contexts. */
export function memoryLeaseStore(rows: Map<string, Lease>): LeaseStore {
  let closed = false;
  /** Each call is one step, later than the call. */
  const step = async <T>(work: () => T): Promise<T> => {
    await Promise.resolve();
    if (closed) throw new RunnerError("closed");
    return work();
  };
  return {
    take: (name, owner, over) =>
      step(() => {
        const there = rows.get(name);
        const free = there === undefined || there.owner === owner || (over !== undefined && isSameLease(there, over));
        if (!free) return there;
        rows.set(name, { owner, beat: 0 });
        return undefined;
      }),
    replace: (name, owner) => step(() => void rows.set(name, { owner, beat: 0 })),
    beat: (owned) =>
      step(() =>
        [...owned].flatMap(([name, owner]) => {
          const there = rows.get(name);
          if (there?.owner !== owner) return [name];
          rows.set(name, { owner, beat: there.beat + 1 });
          return [];
        }),
      ),
    remove: (name, owner) => step(() => void (rows.get(name)?.owner === owner && rows.delete(name))),
    all: () => step(() => new Map(rows)),
    close: async () => {
      closed = true;
    },
  };
}
