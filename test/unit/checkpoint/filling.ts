import type { Checkpoint } from "../../../src/checkpoint/checkpoint.js";
import type { LocalCheckpointStore } from "../../../src/checkpoint/checkpoint-store.js";
import { checkpoint } from "./kit.js";

/** What the laws of {@link LocalCheckpointStore} are tried with, in stores that `open` makes. */
export function filling(open: () => LocalCheckpointStore) {
  const listed = async (store: LocalCheckpointStore, ...query: Parameters<LocalCheckpointStore["list"]>) =>
    (await store.list(...query)).map(({ id }) => id);

  async function filled(...checkpoints: readonly Checkpoint[]): Promise<LocalCheckpointStore> {
    const store = open();
    for (const it of checkpoints) await store.save(it);
    return store;
  }

  /** Five in the run, at three times: in the order of their letters. */
  const five = (more: Partial<Checkpoint> = {}): Promise<LocalCheckpointStore> =>
    filled(
      checkpoint("c", { timestamp: 2_000, ...more }),
      checkpoint("a", { timestamp: 1_000, ...more }),
      checkpoint("e", { timestamp: 3_000, ...more }),
      checkpoint("d", { timestamp: 2_000, ...more }),
      checkpoint("b", { timestamp: 1_000, ...more }),
    );

  return { listed, filled, five };
}
