import { transfer, wrap } from "comlink";
import { BehaviorSubject, defaultIfEmpty, filter, firstValueFrom, type Observable } from "rxjs";
import { onAbort, sharedController } from "../platform/abort.js";
import { inTime, systemClock } from "../platform/clock.js";
import { randomId } from "../platform/ids.js";
import { ownLives } from "../platform/context-locks.js";
import type { HeldLock } from "../platform/locks.js";
import { hostLifeLockName, tabLifeLockName } from "../platform/names.js";
import { onPageCache } from "../platform/page-cache.js";
import { RunnerError, type RunnerErrorCode } from "../run/errors.js";
import { fromErrorData, toErrorData, unwrap } from "../wire/errors.js";
import type { KeptKey } from "../runtime/locking.js";
import type { CallContext, HostApi, HostCalls } from "../runtime/host-api.js";
import type { KeyForm } from "../run/types.js";
import type { HostKind, RuntimeStatus, StatusFrame, Survives } from "../wire/shapes.js";
import { backoff } from "./read-until-done.js";
import { startHost, type HostFactories, type StartedHost } from "./start-host.js";

/** Where the host is, and how the tab connects to it. */
export interface ConnectRuntimeOptions {
  /** How to start a host, tried in this order: `shared`, `dedicated`, `page`. */
  readonly hosts: HostFactories;
  /** The user of this tab, 1 to 200 characters: hosts of another one, or of none, are refused. Default: none. */
  readonly user?: string;
  /** How long a host has to say hello before the next kind is tried, in ms. Default 15,000. */
  readonly startTimeoutMs?: number;
  /** How long a call of the host may take, in ms. Default 15,000. */
  readonly callTimeoutMs?: number;
  /**
   * Whether `hosts.shared` passes `extendedLifetime: true`: decides which `survives` `status$` reports. Default true.
   */
  readonly extendedLifetime?: boolean;
  /**
   * Headers of the request by which the middleware sees a call: who is signed in, for example. A function is called for
   * each call. Never stored. Requests of `fetch` have only their own headers.
   */
  readonly headers?: CallHeaders;
}

/** Headers, or a function that returns the current ones. */
export type CallHeaders =
  | Readonly<Record<string, string>>
  | (() => Readonly<Record<string, string>> | Promise<Readonly<Record<string, string>>>);

/** A host that this tab is connected to. */
export interface LinkedHost {
  readonly calls: HostCalls;
  readonly keyForm: KeyForm;
  /** Aborts when the host is gone, with the RunnerError that says so. */
  readonly lost: AbortSignal;
}

type Name = keyof HostApi;
type Given<C extends Name> = Parameters<HostApi[C]>;
type Result<C extends Name> = ReturnType<HostApi[C]>;

/** Restart backoff after hosts that lived for less than `SHORT_LIFE_MS`: first and longest wait, in ms. */
const SHORT_LIFE_MS = 1_000;
const RESTART_MS = 100;
const RESTART_MAX_MS = 5_000;

/** Whether another try is pointless. */
const isFinal = (code: RunnerErrorCode): boolean =>
  code === "outdated" || code === "protocol-mismatch" || code === "wrong-user";

/**
 * A tab's link to its host: starts one, watches its life lock, connects to the next one when it dies. While the page is
 * in the back/forward cache it has none.
 */
export class HostLink {
  readonly status$ = new BehaviorSubject<RuntimeStatus>({ is: "connecting" });
  /** `status$` for who may come after the end, when a subject replays nothing. */
  readonly replayed$: Observable<RuntimeStatus> = this.status$
    .asObservable()
    .pipe(defaultIfEmpty<RuntimeStatus, RuntimeStatus>({ is: "closed" }));

  private readonly closed = sharedController();
  private readonly lives = ownLives();
  private readonly tabId = randomId();
  private life: HeldLock | undefined;
  private linking!: Promise<LinkedHost>;
  /** Ends the current link, or the attempt to make one. */
  private ended!: AbortController;
  private comeBack: (() => void) | undefined;
  /** Failed attempts in a row. */
  private failures = 0;
  /** Short-lived hosts in a row. */
  private shortLived = 0;
  private readonly options: Required<Omit<ConnectRuntimeOptions, "user">>;
  readonly user: string | undefined;
  /** Given to the next host, when this one has died. */
  private keptKey: KeptKey | undefined;

  constructor(options: ConnectRuntimeOptions) {
    this.options = {
      hosts: options.hosts,
      startTimeoutMs: options.startTimeoutMs ?? 15_000,
      callTimeoutMs: options.callTimeoutMs ?? 15_000,
      extendedLifetime: options.extendedLifetime ?? true,
      headers: options.headers ?? {},
    };
    this.user = options.user;
    this.begin();
    onPageCache(
      { enter: () => this.suspend(), leave: () => this.comeBack?.(), unload: () => void this.life?.release() },
      this.closed.signal,
    );
  }

  /** The connected host, once there is one; tries again if the last attempt failed. Errors: why there is none. */
  linked(): Promise<LinkedHost> {
    const { value: status } = this.status$;
    if (status.is === "failed" && this.ended.signal.aborted && !isFinal(status.error.code)) this.begin();
    return this.linking;
  }

  /**
   * Calls the host; if it dies before it answers, calls the next one, so the call may run twice. Settles within the
   * deadline, however hosts behave (L13).
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

  /** Calls one host. Errors as {@link call}, and `host-lost` if it dies before it answers. */
  async callOnce<C extends Name>(name: C, ...given: Given<C>): Promise<Result<C>> {
    return this.withinDeadline((settled) => this.ask(settled, name, given));
  }

  /** How the host is handed a key. Errors as {@link call}. */
  async keyForm(): Promise<KeyForm> {
    return (await this.withinDeadline(() => this.linked())).keyForm;
  }

  /** Keeps the key for the next host; undefined: forgets it. */
  keep(key: KeptKey | undefined): void {
    this.keptKey = key;
  }

  /** Resolves when the host can read its database. Errors: RunnerError `closed`, `timeout`, or why there is no host. */
  async unlocked(): Promise<void> {
    const isOver = ({ is }: RuntimeStatus): boolean => is === "closed" || is === "failed";
    // Threads in memory are not encrypted: they have no state of it.
    const isReadable = (now: RuntimeStatus): boolean =>
      now.is === "connected" && (now.encryption === undefined || now.encryption === "unlocked");
    const changed = this.replayed$.pipe(filter((now) => isOver(now) || isReadable(now)));
    // L13: somebody may lock it again meanwhile.
    const status = await this.withinDeadline(() => firstValueFrom(changed));
    if (status.is === "failed") throw fromErrorData(status.error);
    if (status.is === "closed") throw new RunnerError("closed");
  }

  /** Resolves when there is a new link, or never. */
  linkedAnew(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const { value: before } = this.status$;
      const bootId = before.is === "connected" ? before.bootId : undefined;
      const linked = this.status$
        .pipe(filter((now) => now.is === "connected" && now.bootId !== bootId))
        .subscribe(() => resolve());
      onAbort(signal, () => linked.unsubscribe());
    });
  }

  private async ask<C extends Name>(settled: AbortSignal, name: C, given: Given<C>): Promise<Result<C>> {
    const { calls, lost } = await this.linked();
    // A request of `fetch` has headers of its own.
    const context = name === "fetch" ? { headers: {} } : await this.context();
    return unwrap(await Promise.race([calls[name](context, ...given), failed(lost, settled)]));
  }

  private async context(): Promise<CallContext> {
    const { headers } = this.options;
    return { headers: typeof headers === "function" ? await headers() : headers };
  }

  /** @param begin is given a signal that aborts when the result is settled. Errors: its own; RunnerError `timeout` */
  async withinDeadline<T>(begin: (settled: AbortSignal) => Promise<T>): Promise<T> {
    const settled = new AbortController();
    const timeout = (callTimeoutMs: number): Error => new RunnerError("timeout", { callTimeoutMs });
    try {
      // L13: every call settles.
      return await inTime(begin(settled.signal), this.options.callTimeoutMs, systemClock, timeout);
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
    await this.lives.close();
  }

  /** A page in the back/forward cache hears nothing, and a message may evict it: it disconnects from its host. */
  private suspend(): void {
    const back = new Promise<void>((resolve) => (this.comeBack = resolve));
    // Pending calls are answered by the next host.
    this.ended.abort(new RunnerError("host-lost"));
    void this.life?.release();
    this.life = undefined;
    this.status$.next({ is: "reconnecting", attempt: 1 });
    this.begin(back);
  }

  /** @param after when to begin; default: now */
  private begin(after?: Promise<void>): void {
    const ended = sharedController();
    this.ended = ended;
    this.linking = after === undefined ? this.link(ended) : after.then(() => this.link(ended));
    this.linking.catch(() => undefined);
  }

  private async link(ended: AbortController): Promise<LinkedHost> {
    const { signal } = ended;
    try {
      // Closed or suspended while it waited.
      if (signal.aborted) throw signal.reason;
      const { hosts, startTimeoutMs } = this.options;
      const started = await startHost(
        hosts,
        startTimeoutMs,
        this.lives,
        signal,
        this.status$.value.is === "reconnecting",
        this.user,
      );
      onAbort(signal, () => started.end());
      // Held before it is named, so that whoever waits for the lock waits for the end of this tab.
      const life = (this.life ??= await this.lives.hold(tabLifeLockName(this.tabId)));
      if (signal.aborted) {
        await life.release();
        if (this.life === life) this.life = undefined;
        throw signal.reason;
      }
      started.raw.postMessage({ type: "tab", tabId: this.tabId });
      const { port, keyForm = "keys" } = started.hello;
      const linked: LinkedHost = {
        calls: wrap(port) as unknown as HostCalls,
        keyForm,
        lost: signal,
      };
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

  /** Reconnects while no call is pending. */
  private tryLater(attempt: AbortController): void {
    void systemClock.after(backoff(++this.failures), this.closed.signal).then(() => {
      if (this.ended === attempt && !this.closed.signal.aborted) this.begin();
    });
  }

  /** No event reports the death of a worker; the fall of its life lock does. */
  private watchLife({ hello, gone }: StartedHost, ended: AbortController): void {
    const since = systemClock.elapsed();
    const life = this.lives.whenFree(hostLifeLockName(hello.dbName, hello.hostId), ended.signal);
    const left = gone.then((locked) => {
      if (locked) this.keptKey = undefined;
      return true;
    });
    void Promise.race([life, left]).then((died) => {
      if (!died || ended.signal.aborted) return;
      ended.abort(new RunnerError("host-lost"));
      this.shortLived = systemClock.elapsed() - since < SHORT_LIFE_MS ? this.shortLived + 1 : 0;
      const attempt = this.shortLived + 1;
      this.status$.next({ is: "reconnecting", attempt });
      // At once, unless hosts keep dying.
      const pause = Math.min(RESTART_MS * 2 ** (this.shortLived - 2), RESTART_MAX_MS);
      this.begin(this.shortLived > 1 ? systemClock.after(pause, this.closed.signal) : undefined);
    });
  }

  private async watchHost({ hello, kind }: StartedHost, linked: LinkedHost, settled: AbortSignal): Promise<void> {
    const { calls, lost } = linked;
    const { port1, port2 } = new MessageChannel();
    const survives = survivedBy(kind, this.options.extendedLifetime);
    const first = new Promise<void>((resolve) => {
      port1.onmessage = ({ data }: MessageEvent<StatusFrame>) => {
        if (lost.aborted) return;
        this.status$.next({
          ...data,
          is: "connected",
          host: hello.kind,
          bootId: hello.hostId,
          dbName: hello.dbName,
          exclusion: hello.exclusion,
          survives,
          ...(hello.agents !== undefined && { agents: hello.agents }),
        });
        resolve();
      };
    });
    onAbort(lost, () => port1.close());
    const watching = calls.watch({ headers: {} }, transfer(port2, [port2]));
    unwrap(await Promise.race([watching, failed(lost, settled)]));
    await Promise.race([first, failed(lost, settled)]);
    await this.unlockAgain(linked, settled);
  }

  /** A host that has just started does not have the key that this tab has given to the one before. */
  private async unlockAgain({ calls, keyForm, lost }: LinkedHost, settled: AbortSignal): Promise<void> {
    // It is of another kind than the one before: people are asked for the key.
    if (keyForm === "bytes" && !(this.keptKey?.key instanceof Uint8Array)) this.keptKey = undefined;
    const { keptKey } = this;
    const { value: status } = this.status$;
    if (keptKey === undefined || status.is !== "connected" || status.encryption !== "locked") return;
    const unlocking = calls.unlock(await this.context(), keptKey);
    const answer = await Promise.race([unlocking, failed(lost, settled)]);
    // Somebody has locked it or changed the key meanwhile: people are asked for it.
    const isOver = "error" in answer && (answer.error.code === "locked" || answer.error.code === "wrong-key");
    if (isOver && this.keptKey === keptKey) this.keptKey = undefined;
  }
}

/** Rejects when the host is lost; listens until `settled`. */
function failed(lost: AbortSignal, settled: AbortSignal): Promise<never> {
  const failing = new Promise<never>((_, reject) => onAbort(lost, () => reject(lost.reason), settled));
  failing.catch(() => undefined);
  return failing;
}

function survivedBy(kind: HostKind, extendedLifetime: boolean): Survives {
  if (kind !== "shared-worker") return "nothing";
  return extendedLifetime && supportsExtendedLifetime() ? "reload" : "tab-close";
}

/** A browser that knows the option reads it before it rejects the invalid URL. */
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
    // Always: no worker is started.
  }
  return known;
}
