import { transfer, wrap, type Remote } from "comlink";
import { BehaviorSubject, Subject } from "rxjs";
import { systemClock } from "../platform/clock.js";
import { randomId } from "../platform/ids.js";
import { defaultLocks, type HeldLock, type Locks } from "../platform/locks.js";
import { hostLifeLockName, tabLifeLockName } from "../platform/names.js";
import { RunnerError } from "../run/errors.js";
import { toErrorData, unwrap } from "../wire/errors.js";
import type { HostApi } from "../wire/host-api.js";
import type { HostKind, Reply, RuntimeStatus, Survives, ThreadChange, WatchFrame } from "../wire/shapes.js";
import { startHost, type HostFactories, type StartedHost } from "./start-host.js";

export interface HostLinkOptions {
  readonly hosts: HostFactories;
  readonly startTimeoutMs: number;
  readonly callTimeoutMs: number;
  /** The `shared` factory asks for `extendedLifetime: true`. */
  readonly extendedLifetime: boolean;
}

/** A host that this tab is connected to. */
export interface LinkedHost {
  readonly api: Remote<HostApi>;
  /** Aborts when the host is gone, with the RunnerError that tells it. */
  readonly lost: AbortSignal;
}

/** A tab's link to its host: starts one, watches its life, connects to the next one when it dies. */
export class HostLink {
  readonly status$ = new BehaviorSubject<RuntimeStatus>({ is: "connecting" });
  readonly changes$ = new Subject<ThreadChange>();

  private readonly closed = new AbortController();
  private readonly locks: Locks | undefined = defaultLocks();
  private readonly tabId = randomId();
  private life: HeldLock | undefined;
  private linking: Promise<LinkedHost>;

  constructor(private readonly options: HostLinkOptions) {
    this.linking = this.link(0);
    this.linking.catch(() => undefined);
  }

  /** The connected host, once there is one. Errors: why there is none. */
  linked(): Promise<LinkedHost> {
    return this.linking;
  }

  /**
   * Calls the host. Settles within the deadline, however the host behaves.
   *
   * Errors: what the host answered; RunnerError `timeout`, `host-lost`, `no-host`, `closed`.
   */
  async call<T>(work: (host: LinkedHost) => Promise<Reply<T>>): Promise<T> {
    return this.withinDeadline(async (settled) => {
      const host = await this.linking;
      return unwrap(await Promise.race([work(host), failed(host.lost, settled)]));
    });
  }

  /** @param begin is given a signal that aborts when its answer is there, or wanted no more */
  private async withinDeadline<T>(begin: (settled: AbortSignal) => Promise<T>): Promise<T> {
    const { callTimeoutMs } = this.options;
    const settled = new AbortController();
    const answer = begin(settled.signal);
    const deadline = systemClock.after(callTimeoutMs, settled.signal).then(() => {
      throw new RunnerError("timeout", { callTimeoutMs });
    });
    // Whichever comes second is heard by nobody.
    deadline.catch(() => undefined);
    answer.catch(() => undefined);
    try {
      return await Promise.race([answer, deadline]);
    } finally {
      settled.abort();
    }
  }

  async close(): Promise<void> {
    if (this.closed.signal.aborted) return;
    this.closed.abort(new RunnerError("closed"));
    this.status$.next({ is: "closed" });
    this.status$.complete();
    this.changes$.complete();
    await this.life?.release();
  }

  private async link(attempt: number): Promise<LinkedHost> {
    try {
      if (this.locks === undefined) throw new RunnerError("insecure-context");
      const started = await startHost(this.options.hosts, this.options.startTimeoutMs, this.locks, this.closed.signal);
      // Held before it is named, so that whoever waits for it waits for the end of this tab.
      this.life ??= await this.locks.hold(tabLifeLockName(this.tabId));
      if (this.closed.signal.aborted) {
        started.end();
        await this.life.release();
        throw this.closed.signal.reason;
      }
      started.raw.postMessage({ type: "tab", tabId: this.tabId });
      const linked = this.watchLife(started, this.locks);
      await this.withinDeadline((settled) => this.watchHost(started, linked, attempt, settled));
      return linked;
    } catch (error) {
      const reason = this.closed.signal.aborted ? new RunnerError("closed") : error;
      if (!this.closed.signal.aborted) this.status$.next({ is: "failed", error: toErrorData(error) });
      throw reason;
    }
  }

  /** No event tells the death of a worker; the fall of its life lock does. */
  private watchLife({ hello, end }: StartedHost, locks: Locks): LinkedHost {
    const lost = new AbortController();
    void locks.whenFree(hostLifeLockName(hello.dbName, hello.hostId), this.closed.signal).then((died) => {
      lost.abort(new RunnerError(died ? "host-lost" : "closed"));
      end();
      if (!died) return;
      this.status$.next({ is: "reconnecting", attempt: 1 });
      this.linking = this.link(1);
      this.linking.catch(() => undefined);
    });
    return { api: wrap<HostApi>(hello.port), lost: lost.signal };
  }

  private async watchHost(
    { hello, kind }: StartedHost,
    { api, lost }: LinkedHost,
    attempt: number,
    settled: AbortSignal,
  ): Promise<void> {
    const { port1, port2 } = new MessageChannel();
    const first = new Promise<void>((resolve) => {
      port1.onmessage = ({ data }: MessageEvent<WatchFrame>) => {
        if (lost.aborted) return;
        if (data.type === "threads") return this.changes$.next(data.change);
        this.status$.next({
          is: "connected",
          host: hello.kind,
          bootId: hello.bootId,
          dbName: hello.dbName,
          durability: data.durability,
          survives: survives(kind, this.options.extendedLifetime),
          tabs: data.tabs,
          agents: hello.agents,
        });
        resolve();
      };
    });
    lost.addEventListener("abort", () => port1.close(), { once: true });
    unwrap(await Promise.race([api.watch(transfer(port2, [port2])), failed(lost, settled)]));
    await Promise.race([first, failed(lost, settled)]);
    if (attempt === 0) return;
    // What happened while nobody told us.
    for (const thread of unwrap(await Promise.race([api.listThreads({}), failed(lost, settled)]))) {
      this.changes$.next({ type: "changed", thread });
    }
  }
}

/** Rejects when the host is lost; listens until `settled`. */
function failed(lost: AbortSignal, settled: AbortSignal): Promise<never> {
  const failing = new Promise<never>((_, reject) => {
    if (lost.aborted) reject(lost.reason);
    else lost.addEventListener("abort", () => reject(lost.reason), { once: true, signal: settled });
  });
  failing.catch(() => undefined);
  return failing;
}

function survives(kind: HostKind, extendedLifetime: boolean): Survives {
  if (kind !== "shared-worker") return "nothing";
  return extendedLifetime && supportsExtendedLifetime() ? "reload" : "tab-close";
}

/** The browser reads the option before it finds that the address is none, and so tells that it knows it. */
function supportsExtendedLifetime(): boolean {
  let known = false;
  try {
    const none = new SharedWorker("https://[", {
      get extendedLifetime() {
        known = true;
        return true;
      },
    });
    none.port.close();
  } catch {
    // Always: no worker comes of it.
  }
  return known;
}
