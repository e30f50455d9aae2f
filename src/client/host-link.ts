import { transfer, wrap } from "comlink";
import { BehaviorSubject } from "rxjs";
import { sharedController } from "../platform/abort.js";
import { systemClock } from "../platform/clock.js";
import { randomId } from "../platform/ids.js";
import { livesWhereAllowed } from "../platform/denied.js";
import { lazyLives } from "../platform/context-locks.js";
import { defaultLocks, type HeldLock, type Lives } from "../platform/locks.js";
import { hostLifeLockName, tabLifeLockName } from "../platform/names.js";
import { onPageCache } from "../platform/page-cache.js";
import { RunnerError, type RunnerErrorCode } from "../run/errors.js";
import { toErrorData, unwrap } from "../wire/errors.js";
import type { HostApi, HostCalls } from "../wire/host-api.js";
import type { HostKind, RuntimeStatus, StatusFrame, Survives } from "../wire/shapes.js";
import { startHost, type HostFactories, type StartedHost } from "./start-host.js";

export interface HostLinkOptions {
  readonly hosts: HostFactories;
  readonly startTimeoutMs: number;
  readonly callTimeoutMs: number;
  /** The `shared` factory asks for `extendedLifetime: true`. */
  readonly extendedLifetime: boolean;
  /** What goes with each call, for the middleware of the runtime. */
  readonly headers?: CallHeaders;
}

/** Headers, or how to get those of the moment. */
export type CallHeaders =
  | Readonly<Record<string, string>>
  | (() => Readonly<Record<string, string>> | Promise<Readonly<Record<string, string>>>);

/** A host that this tab is connected to. */
export interface LinkedHost {
  readonly calls: HostCalls;
  /** Aborts when the host is gone, with the RunnerError that says so. */
  readonly lost: AbortSignal;
}

type Name = keyof HostApi;
type Given<C extends Name> = Parameters<HostApi[C]>;
type Result<C extends Name> = ReturnType<HostApi[C]>;

/** A host that lives for less than this is started again less and less often, in ms. */
const SHORT_LIFE_MS = 1_000;
const RESTART_MS = 100;
const RESTART_MAX_MS = 5_000;
/** Reconnect backoff while no call is pending: first and longest wait, in ms. */
const RETRY_MS = 1_000;
const RETRY_MAX_MS = 30_000;

/** What another try does not mend. */
const isFinal = (code: RunnerErrorCode): boolean => code === "outdated" || code === "protocol-mismatch";

/**
 * A tab's link to its host: starts one, watches its life, connects to the next one when it dies. While the page is in the
 * back/forward cache it has none.
 */
export class HostLink {
  readonly status$ = new BehaviorSubject<RuntimeStatus>({ is: "connecting" });

  private readonly closed = sharedController();
  private readonly channelLives = defaultLocks() === undefined ? lazyLives() : undefined;
  private readonly lives: Lives = livesWhereAllowed(defaultLocks() ?? this.channelLives!);
  private readonly tabId = randomId();
  private life: HeldLock | undefined;
  private linking!: Promise<LinkedHost>;
  /** Ends the present link, or the attempt at one. */
  private ended!: AbortController;
  private comeBack: (() => void) | undefined;
  /** Tries in a row that came to nothing. */
  private failures = 0;
  /** Hosts in a row that ended as soon as they had said hello. */
  private shortLived = 0;

  constructor(private readonly options: HostLinkOptions) {
    this.begin();
    onPageCache(
      { enter: () => this.suspend(), leave: () => this.comeBack?.(), unload: () => void this.life?.release() },
      this.closed.signal,
    );
  }

  /** The connected host, once there is one; where the last try failed, this is another one. Errors: why there is none. */
  linked(): Promise<LinkedHost> {
    const { value: status } = this.status$;
    if (status.is === "failed" && this.ended.signal.aborted && !isFinal(status.error.code)) this.begin();
    return this.linking;
  }

  /**
   * Calls the host; where it dies before it answers, the next one is called, so the call may be done twice. Settles within
   * the deadline, however hosts behave.
   *
   * Errors: what the host answered; RunnerError `timeout`, `no-host`, `closed`, or why there is no host.
   */
  async call<C extends Name>(name: C, ...given: Given<C>): Promise<Result<C>> {
    return this.withinDeadline(async (settled) => {
      for (;;) {
        try {
          return await this.ask(settled, name, given);
        } catch (error) {
          if (settled.aborted || !RunnerError.is(error, "host-lost")) throw error;
        }
      }
    });
  }

  /** Calls one host. Errors as {@link call}, and `host-lost` where it dies before it answers. */
  async callOnce<C extends Name>(name: C, ...given: Given<C>): Promise<Result<C>> {
    return this.withinDeadline((settled) => this.ask(settled, name, given));
  }

  private async ask<C extends Name>(settled: AbortSignal, name: C, given: Given<C>): Promise<Result<C>> {
    const { calls, lost } = await this.linked();
    const { headers = {} } = this.options;
    const context = { headers: typeof headers === "function" ? await headers() : headers };
    return unwrap(await Promise.race([calls[name](context, ...given), failed(lost, settled)]));
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
    const error = new RunnerError("closed");
    this.closed.abort(error);
    this.ended.abort(error);
    this.comeBack?.();
    this.status$.next({ is: "closed" });
    this.status$.complete();
    await this.life?.release();
    await this.channelLives?.close();
  }

  /** A page in the back/forward cache hears nothing, and what is posted to it may throw it out: it lets go of its host. */
  private suspend(): void {
    const back = new Promise<void>((resolve) => (this.comeBack = resolve));
    // Whoever waits for an answer gets it from the next host.
    this.ended.abort(new RunnerError("host-lost"));
    void this.life?.release();
    this.life = undefined;
    this.status$.next({ is: "reconnecting", attempt: 1 });
    this.begin(back);
  }

  /** @param after when to begin; at once where it is not given */
  private begin(after?: Promise<void>): void {
    const ended = sharedController();
    this.ended = ended;
    this.linking = after === undefined ? this.link(ended) : after.then(() => this.link(ended));
    this.linking.catch(() => undefined);
  }

  private async link(ended: AbortController): Promise<LinkedHost> {
    const { signal } = ended;
    try {
      // Closed or suspended while it waited for its time.
      if (signal.aborted) throw signal.reason;
      const { hosts, startTimeoutMs } = this.options;
      const started = await startHost(
        hosts,
        startTimeoutMs,
        this.lives,
        signal,
        this.status$.value.is === "reconnecting",
      );
      const end = (): void => started.end();
      signal.addEventListener("abort", end, { once: true });
      // Held before it is named, so that whoever waits for it waits for the end of this tab.
      const life = (this.life ??= await this.lives.hold(tabLifeLockName(this.tabId)));
      if (signal.aborted) {
        end();
        await life.release();
        if (this.life === life) this.life = undefined;
        throw signal.reason;
      }
      started.raw.postMessage({ type: "tab", tabId: this.tabId });
      const linked: LinkedHost = { calls: wrap(started.hello.port) as unknown as HostCalls, lost: signal };
      this.watchLife(started, ended);
      await this.withinDeadline((settled) => this.watchHost(started, linked, settled));
      this.failures = 0;
      return linked;
    } catch (error) {
      if (signal.aborted) throw signal.reason;
      ended.abort(error);
      const data = toErrorData(error);
      this.status$.next({ is: "failed", error: data });
      if (!isFinal(data.code)) this.tryLater(ended);
      throw error;
    }
  }

  /** For who calls nothing, and only watches. */
  private tryLater(attempt: AbortController): void {
    const pause = Math.min(RETRY_MS * 2 ** this.failures++, RETRY_MAX_MS);
    void systemClock.after(pause, this.closed.signal).then(() => {
      if (this.ended === attempt && !this.closed.signal.aborted) this.begin();
    });
  }

  /** No event tells the death of a worker; the fall of its life lock does. */
  private watchLife({ hello, gone }: StartedHost, ended: AbortController): void {
    const since = systemClock.elapsed();
    const life = this.lives.whenFree(hostLifeLockName(hello.dbName, hello.hostId), ended.signal);
    void Promise.race([life, gone.then(() => true)]).then((died) => {
      if (!died || ended.signal.aborted) return;
      ended.abort(new RunnerError("host-lost"));
      this.shortLived = systemClock.elapsed() - since < SHORT_LIFE_MS ? this.shortLived + 1 : 0;
      const attempt = this.shortLived + 1;
      this.status$.next({ is: "reconnecting", attempt });
      // At once, unless that is all that hosts do here.
      const pause = Math.min(RESTART_MS * 2 ** (this.shortLived - 2), RESTART_MAX_MS);
      this.begin(this.shortLived > 1 ? systemClock.after(pause, this.closed.signal) : undefined);
    });
  }

  private async watchHost(
    { hello, kind }: StartedHost,
    { calls, lost }: LinkedHost,
    settled: AbortSignal,
  ): Promise<void> {
    const { port1, port2 } = new MessageChannel();
    const first = new Promise<void>((resolve) => {
      port1.onmessage = ({ data }: MessageEvent<StatusFrame>) => {
        if (lost.aborted) return;
        this.status$.next({
          is: "connected",
          host: hello.kind,
          bootId: hello.hostId,
          dbName: hello.dbName,
          durability: data.durability,
          survives: survives(kind, this.options.extendedLifetime),
          tabs: data.tabs,
          attachments: data.attachments,
          ...(hello.agents !== undefined && { agents: hello.agents }),
          exclusion: hello.exclusion,
          ...(data.error !== undefined && { error: data.error }),
        });
        resolve();
      };
    });
    lost.addEventListener("abort", () => port1.close(), { once: true });
    const watching = calls.watch({ headers: {} }, transfer(port2, [port2]));
    unwrap(await Promise.race([watching, failed(lost, settled)]));
    await Promise.race([first, failed(lost, settled)]);
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
