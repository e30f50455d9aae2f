import { IDLE_LOCK, IDLE_NAME, stamp, type IdleWord } from "./stamps.js";

/** When a page noticed what of the worker's death, by its own clock. */
export interface IdleWitness {
  /** The worker's lock fell. */
  readonly fallen: number;
  /** The first message of the next worker, which was started on that. */
  readonly here: number;
}

/** Starts the worker, or connects to it: when its first message came, and when it holds its lock. */
function connect(): { readonly here: Promise<number>; readonly held: Promise<number> } {
  const worker = new SharedWorker(new URL("./idle.worker.ts", import.meta.url), { type: "module", name: IDLE_NAME });
  const heard = (word: IdleWord): Promise<number> =>
    new Promise((resolve) =>
      worker.port.addEventListener("message", ({ data }: MessageEvent<IdleWord>) => data === word && resolve(stamp())),
    );
  const words = { here: heard("here"), held: heard("held") };
  worker.port.start();
  return words;
}

let held = connect().held;
let witness: Promise<IdleWitness> | undefined;

const idle = {
  now: stamp,

  /** Resolves when this page waits for the worker's death. */
  async brace(): Promise<void> {
    await held;
    witness = navigator.locks
      .request(IDLE_LOCK, { mode: "shared" }, () => stamp())
      .then(async (fallen) => {
        const next = connect();
        ({ held } = next);
        return { fallen, here: await next.here };
      });
    // Answered behind the request above.
    await navigator.locks.query();
  },

  async witnessed(): Promise<IdleWitness> {
    if (witness === undefined) throw new Error("not braced");
    return witness;
  },
};

export type IdleBench = typeof idle;

Object.assign(globalThis, { idle });
