import { isDenied } from "../platform/denied.js";
import { defaultLocks } from "../platform/locks.js";
import { DEFAULT_DB_NAME } from "../platform/names.js";
import type { AgentRunner } from "../run/contract.js";
import { invalidInput, RunnerError } from "../run/errors.js";
import { IndexedDBAgentRunner, type IndexedDBAgentRunnerOptions } from "../runner/indexeddb-agent-runner.js";
import { LocalAgentRunner } from "../runner/local-agent-runner.js";
import type { SharedRunner } from "../runner/shared-memory-runner.js";
import type { Lazy } from "../platform/lazy.js";
import type { Encryption } from "../storage/encryption/encryption.js";
import { toOpenError } from "../storage/indexeddb/failures.js";

export interface RunnerHomeOptions extends Pick<
  IndexedDBAgentRunnerOptions,
  | "dbName"
  | "encryption"
  | "user"
  | "stopGraceMs"
  | "maxRunMs"
  | "limits"
  | "eventLimits"
  | "recordInput"
  | "openTimeoutMs"
  | "logger"
> {
  /**
   * Your own runner. Default: one made from the other options, an IndexedDBAgentRunner in a browser (or wherever
   * `indexedDB` exists), else an InMemoryAgentRunner. Tabs need a runner of this library. With a runner given, the
   * options to make one are refused here; its bounds hold for unrecorded runs too.
   */
  readonly runner?: AgentRunner;
  /**
   * If the browser keeps no data for the page (`storage-unavailable`), threads are kept in the host's memory, and
   * `status$` says `memory`. Default false: nothing runs, and tabs get the error.
   */
  readonly memoryFallback?: boolean;
}

/** A page or a worker. (Node has more and more browser globals, but neither of these.) */
const isBrowser = (): boolean => "document" in globalThis || "WorkerGlobalScope" in globalThis;

/** The runner of a runtime, made at its first use. After a failed open, the next call tries again. */
export class RunnerHome {
  private opening: Promise<AgentRunner> | undefined;
  private opened: AgentRunner | undefined;
  /** Set for the process-wide in-memory runner, which other runtimes may share. */
  private shared: SharedRunner | undefined;
  private closing: Promise<void> | undefined;
  /** Resolves when the runner before is closed. */
  private renewing: Promise<void> | undefined;

  /** @param told of each runner of this library: `made` before it is open, `opened` once it is */
  constructor(
    private readonly options: RunnerHomeOptions,
    private readonly told: {
      /** That of the options, which others share. */
      readonly encryption?: Lazy<Encryption>;
      readonly made?: (runner: LocalAgentRunner) => void;
      readonly opened?: (runner: LocalAgentRunner) => void;
    } = {},
  ) {}

  /** Resolves with the open runner. Errors: RunnerError, why there is none. */
  async open(): Promise<AgentRunner> {
    if (this.closing !== undefined) throw new RunnerError("closed");
    this.opening ??= (this.renewing === undefined ? this.openNow() : this.renewing.then(() => this.openNow())).catch(
      (error: unknown) => {
        this.opening = undefined;
        throw error;
      },
    );
    const runner = await this.opening;
    // Checked each time: a newer build may have taken over the database.
    if (runner instanceof LocalAgentRunner) await runner.opened;
    return runner;
  }

  /** As {@link open}. Errors: RunnerError `invalid-input` too, where the runner cannot serve tabs. */
  async openLocal(): Promise<LocalAgentRunner> {
    const runner = await this.open();
    if (runner instanceof LocalAgentRunner) return runner;
    throw invalidInput(
      "runner",
      "Tabs need a runner of this library: another one can be served by createRuntimeHandler only",
    );
  }

  /** The runner, if it is one of this library. */
  get local(): LocalAgentRunner | undefined {
    return this.opened instanceof LocalAgentRunner ? this.opened : undefined;
  }

  /** Releases the runner at once; the next {@link open} makes a new one unless it is the caller's own. */
  letGo(): void {
    this.local?.letGo();
    if (this.options.runner !== undefined) return;
    this.opened = undefined;
    this.opening = undefined;
  }

  /** Ends the runner, and its runs as stopped; the next one is made after `before`. Not for the caller's own. */
  renew(before: () => void): Promise<void> {
    const { opened, opening } = this;
    this.opened = undefined;
    this.opening = undefined;
    const renewing = (async () => {
      try {
        const runner = opened ?? (await opening?.catch(() => undefined));
        if (runner instanceof LocalAgentRunner) await runner.close();
      } finally {
        // Also where the ends of its runs could not be written.
        before();
      }
    })();
    this.renewing = renewing.catch(() => undefined);
    return renewing;
  }

  /** @param endRuns ends only this runtime's runs; called for the shared in-memory runner */
  close(endRuns: () => Promise<void>): Promise<void> {
    this.closing ??= this.closeNow(endRuns);
    return this.closing;
  }

  private async closeNow(endRuns: () => Promise<void>): Promise<void> {
    const runner = this.options.runner ?? this.opened ?? (await this.opening?.catch(() => undefined));
    if (this.shared !== undefined) {
      await endRuns();
      await this.shared.release();
    } else if (runner instanceof LocalAgentRunner) await runner.close();
  }

  private async openNow(): Promise<AgentRunner> {
    const { runner: own, memoryFallback = false, ...options } = this.options;
    if (own !== undefined && !(own instanceof LocalAgentRunner)) return (this.opened = own);
    const dbName = options.dbName ?? DEFAULT_DB_NAME;
    let runner: LocalAgentRunner | undefined;
    try {
      const made = own ?? this.makeRunner(options);
      // A runner already made is not awaited: `letGo` must find it meanwhile.
      runner = made instanceof Promise ? await made : made;
      this.opened = runner;
      // Nothing is awaited in between: a runner that is just made has settled nothing yet.
      this.told.made?.(runner);
      await runner.opened;
      this.told.opened?.(runner);
      return runner;
    } catch (thrown) {
      const error = isDenied(thrown) ? toOpenError(thrown, dbName) : thrown;
      if (own !== undefined) throw error;
      if (this.shared === undefined) await runner?.close().catch(() => undefined);
      else await this.shared.release().catch(() => undefined);
      this.shared = undefined;
      if (!memoryFallback || !RunnerError.is(error, "storage-unavailable")) throw error;
      const locks = isDenied(thrown) ? undefined : defaultLocks();
      // Loaded on demand: few hosts need it.
      const { UnsavedAgentRunner } = await import("../runner/unsaved-agent-runner.js");
      const unsaved = new UnsavedAgentRunner(dbName, locks, options);
      this.opened = unsaved;
      this.told.made?.(unsaved);
      this.told.opened?.(unsaved);
    }
    return this.opened;
  }

  /** Outside a browser, a missing IndexedDB is no denied storage: the runner is in memory. */
  private makeRunner(options: IndexedDBAgentRunnerOptions): LocalAgentRunner | Promise<LocalAgentRunner> {
    const { encryption } = this.told;
    if (isBrowser() || typeof indexedDB !== "undefined") {
      if (encryption === undefined) return new IndexedDBAgentRunner(options);
      return encryption.get().then((it) => new IndexedDBAgentRunner({ ...options, encryption: it }));
    }
    return import("../runner/shared-memory-runner.js").then(({ sharedMemoryRunner }) => {
      const { openTimeoutMs: _openTimeoutMs, ...inMemory } = options;
      this.shared = sharedMemoryRunner(inMemory);
      return this.shared.runner;
    });
  }
}
