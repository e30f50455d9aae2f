import { IndexedDBCheckpointStore, type CheckpointMetadata } from "ag-ui-local-runtime/checkpoint";
import { wrap } from "comlink";
import { nextTask } from "../../../src/platform/clock.js";
import type { Step, WorkerApi } from "./checkpoints.worker.js";

const startWorker = (): Worker => new Worker(new URL("./checkpoints.worker.ts", import.meta.url), { type: "module" });

/** How far a worker has come that saves until it is ended. */
interface Progress {
  /** The last one that it began to save, and whose save ended. */
  begun: number;
  ended: number;
  forksBegun: number;
  forksEnded: number;
}

/** A tab with a worker that saves checkpoints, and a store of its own that looks at them. */
class Checkpoints {
  readonly progress: Progress = { begun: 0, ended: 0, forksBegun: 0, forksEnded: 0 };
  readonly store;
  private worker: Worker | undefined;

  constructor(private readonly dbName: string) {
    this.store = new IndexedDBCheckpointStore({ dbName });
  }

  count(times: number): Promise<number> {
    return wrap<WorkerApi>(startWorker()).count(this.dbName, times);
  }

  saveMany(who: string, count: number): Promise<void> {
    return wrap<WorkerApi>(startWorker()).saveMany(this.dbName, who, count);
  }

  /** @param onStep called at each step of the worker */
  write(from: number, onStep: (step: Step) => void = () => undefined): void {
    const worker = startWorker();
    this.worker = worker;
    worker.addEventListener("message", ({ data }: MessageEvent<Step | { id: string }>) => {
      // comlink's own messages have no such field.
      if (!("is" in data) || worker !== this.worker) return;
      this.note(data);
      onStep(data);
    });
    // Never answered.
    void wrap<WorkerApi>(worker).write(this.dbName, from);
  }

  private note({ is, generation }: Step): void {
    const { progress } = this;
    if (is === "saving") progress.begun = generation;
    else if (is === "saved") progress.ended = generation;
    else if (is === "forking") progress.forksBegun++;
    else progress.forksEnded++;
  }

  /** Ends workers in the middle of so many saves and as many forks, at ever other moments; what is wrong after each. */
  async endInTheMiddle(rounds: number): Promise<string[]> {
    const wrong: string[] = [];
    for (let round = 0; round < rounds * 2; round++) {
      const at = round % 2 === 0 ? "saving" : "forking";
      const turns = round >> 1;
      await new Promise<void>((resolve) => {
        let left = 2;
        this.write(this.progress.begun + 1, async ({ is }) => {
          if (is !== at || --left !== 0) return;
          for (let turn = 0; turn < turns; turn++) await nextTask();
          this.worker?.terminate();
          this.worker = undefined;
          resolve();
        });
      });
      wrong.push(...(await this.check()).map((what) => `after ${round} rounds, ${at}: ${what}`));
    }
    return wrong;
  }

  /** What is not as it was before a save or after it. */
  async check(told: Progress = this.progress): Promise<string[]> {
    const wrong: string[] = [];
    const list = await this.store.list("graph");
    const whole = list.filter(({ id }) => id === "whole");
    if (whole.length !== (told.ended > 0 ? 1 : whole.length)) wrong.push(`it is listed ${whole.length} times`);
    for (const metadata of list) wrong.push(...(await this.checkOne(metadata)));
    const generation = whole[0]?.timestamp ?? 0;
    if (generation < told.ended) wrong.push(`${told.ended} was acknowledged, ${generation} is there`);
    const forks = list.length - whole.length;
    if (forks < told.forksEnded) wrong.push(`${told.forksEnded} forks were acknowledged, ${forks} are there`);
    return wrong;
  }

  /** One moment of a checkpoint is in all of its parts. */
  private async checkOne(metadata: CheckpointMetadata): Promise<string[]> {
    const checkpoint = await this.store.get(metadata.id);
    if (checkpoint === null) return [`${metadata.id} is listed and not there`];
    const { state, visitedNodes, nodeId } = checkpoint;
    const pieces = state.scratch as string[];
    const artifacts = state.artifacts as { generation: number; forked?: number };
    const said = [
      metadata.nodeId,
      nodeId,
      ...visitedNodes,
      (state.input as { generation: number }).generation,
      state.diagnostics.checkpointsSaved,
      artifacts.generation,
      ...(metadata.forkedFrom === undefined ? [metadata.timestamp] : [artifacts.forked]),
      ...pieces.map((piece) => piece.split(" ")[0]),
    ].map(String);
    return new Set(said).size === 1 && pieces.length === 20
      ? []
      : [`${metadata.id} is of ${[...new Set(said)].join(", ")}`];
  }

  listed(runId: string): Promise<CheckpointMetadata[]> {
    return this.store.list("graph", { runId });
  }
}

declare global {
  interface Window {
    checkpoints: Checkpoints;
  }
}

window.checkpoints = new Checkpoints(new URLSearchParams(location.search).get("db") ?? "checkpoints");
