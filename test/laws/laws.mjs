// One change for each law that breaks it, and the suite of `npm test` that must then fail: `npm run laws` tries them all.

/**
 * @typedef {object} Broken
 * @property {string} law
 * @property {string} file the source that is changed
 * @property {string} find stands once in it
 * @property {string} put what takes its place
 * @property {string} suite fails then
 * @property {string} says what the changed code does
 */

/** @type {readonly Broken[]} */
export const BROKEN = [
  {
    law: "L1",
    file: "src/storage/decisions.ts",
    find: "const moved = seen?.activeRunIndex !== base?.activeRunIndex || seen?.epoch !== base?.epoch;",
    put: "const moved = false;",
    suite: "test/unit/storage/run-store.test.ts",
    says: "what a host remembers of a thread is believed where the log went on without it",
  },
  {
    law: "L2",
    file: "src/runner/live/run-feed.ts",
    find: "if (first === undefined || first.firstSeq > seq + 1) return undefined;",
    put: "if (first === undefined) return undefined;",
    suite: "test/unit/runner/tail.test.ts",
    says: "a reader that fell behind is handed the newest chunks with a gap before them",
  },
  {
    law: "L3",
    file: "src/run/finalize.ts",
    find: "return [...endsOf(open, how), terminalEvent(how)];",
    put: "return [terminalEvent(how)];",
    suite: "test/unit/run/finalize.test.ts",
    says: "a run ends with what it opened left open",
  },
  {
    law: "L4",
    file: "src/runner/history/baseline.ts",
    find: "return start === undefined || hasState(asked, start) ? [] : [snapshotOf(start)];",
    put: "return [];",
    suite: "test/unit/runner/baseline.test.ts",
    says: "a delta applies to whatever state the reader has",
  },
  {
    law: "L5",
    file: "src/lock/claim.ts",
    find: "const lock = await locks.tryHold(name);",
    put: "const lock = await locks.steal(name);",
    suite: "test/unit/runner/concurrent.test.ts",
    says: "who comes second takes the thread from who runs in it",
  },
  {
    law: "L6",
    file: "src/storage/decisions.ts",
    find: "head?.epoch === held.epoch && head.holder === held.holder && head.live?.runIndex === held.runIndex;",
    put: "head !== undefined;",
    suite: "test/unit/storage/run-store.test.ts",
    says: "a write does not ask whose run it is",
  },
  {
    law: "L7",
    file: "src/runner/live/execution.ts",
    find: "void clock.after(stopGraceMs, this.ended.signal).then(() => this.settle(askedEnding(as)));",
    put: "",
    suite: "test/unit/runner/endings.test.ts",
    says: "an agent that ignores its stop keeps its thread",
  },
  {
    law: "L8",
    file: "src/runner/live/log-writer.ts",
    find: "const { stop } = await this.store.append(this.claim, chunk);",
    put: "this.events.committed(chunk); const { stop } = await this.store.append(this.claim, chunk);",
    suite: "test/unit/runner/runner.test.ts",
    says: "a chunk is shown before it is committed",
  },
  {
    law: "L9",
    file: "src/runner/claim/recovery.ts",
    find: "if (head.live !== undefined) {",
    put: "if (head.live === null) {",
    suite: "test/unit/runner/hosts.test.ts",
    says: "what a dead host left stays as it is",
  },
  {
    law: "L10",
    file: "src/runner/live/execution.ts",
    find: 'feed.lose(RunnerError.is(error, "fenced") ? undefined : error);',
    put: 'feed.settled("finished");',
    suite: "test/unit/runner/ends-and-claims.test.ts",
    says: "a run whose end cannot be written looks finished",
  },
  {
    law: "L11",
    file: "src/lock/stop.ts",
    find: "return (await isLive()) ? locks.steal(threadLockName(dbName, threadId)) : undefined;",
    put: "return undefined;",
    suite: "test/unit/runner/hosts.test.ts",
    says: "a stop reaches nobody who is silent",
  },
  {
    law: "L12",
    file: "src/runner/live/execution.ts",
    find: 'return this.settle(now.is === "stopping" ? askedEnding(now.as) : ending);',
    put: "void now; return this.settle(ending);",
    suite: "test/unit/runtime/stopped-agents.test.ts",
    says: "what an agent says after it was asked to stop is its end",
  },
  {
    law: "L13",
    file: "src/client/host-link.ts",
    find: "return await Promise.race([answer, deadline]);",
    put: "return await answer;",
    suite: "test/unit/client/host-link.test.ts",
    says: "a call has no deadline",
  },
  {
    law: "L14",
    file: "src/wire/window.ts",
    find: "return this.sizes.length < WINDOW_FRAMES && this.size < WINDOW_SIZE;",
    put: "return this.sizes.length < 8 * WINDOW_FRAMES;",
    suite: "test/unit/wire/frames.test.ts",
    says: "frames are sent ahead whatever their size, and more of them",
  },
  {
    law: "L15",
    file: "src/runner/live/execution.ts",
    find: "history.remember(threadId, epoch, recorded.base(runIndex));",
    put: "",
    suite: "test/unit/runner/pages.test.ts",
    says: "each run reads the thread's history",
  },
  {
    law: "L16",
    file: "src/runner/history/history.ts",
    find: "if (limit === undefined || runIndex < 0) return endOf(await this.baseAt(head, runIndex), limit);",
    put: "if (limit !== null) return endOf(await this.baseAt(head, runIndex), limit);",
    suite: "test/unit/runner/pages.test.ts",
    says: "all of a thread is read where a part is asked for",
  },
  {
    law: "L17",
    file: "src/run/message-list.ts",
    find: "if (this.#owned.has(message)) return message;",
    put: "",
    suite: "test/unit/run/fold.test.ts",
    says: "each event copies what it changes",
  },
  {
    law: "L18",
    file: "src/runner/live/execution.ts",
    find: '? { status: "errored", message: CUT_OFF, code: "INCOMPLETE_STREAM" }',
    put: '? { status: "finished", terminal: { type: EventType.RUN_FINISHED, ...this.its.fenced.claim } }',
    suite: "test/unit/runner/server-ends.test.ts",
    says: "a stream that just ends is a success",
  },
  {
    law: "L19",
    file: "src/runner/agent/event-gate.ts",
    find: "if (depth > maxDepth) return",
    put: "if (depth > Infinity) return",
    suite: "test/unit/runner/event-limits.test.ts",
    says: "an event may be as deep as it likes",
  },
  {
    law: "L20",
    file: "src/run/input-plan.ts",
    find: "const left = cut === undefined ? regeneratedAt() : cutAt(new Set(cut));",
    put: "const left = messages.findIndex((message) => isCompared(message) && !sent.has(message.id));",
    suite: "test/unit/runner/stale.test.ts",
    says: "what a sender lacks is cut off",
  },
];
