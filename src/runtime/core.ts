import { defined } from "../platform/defined.js";
import type { BaseEvent } from "@ag-ui/client";
import { first, firstValueFrom, ReplaySubject, takeUntil, type Observable } from "rxjs";
import { inTime, systemClock } from "../platform/clock.js";
import { randomId } from "../platform/ids.js";
import { Lazy } from "../platform/lazy.js";
import { consoleLogger, loggable, safeLogger, type Logger, warnOnce } from "../platform/log.js";
import { messageOf, RunnerError, notEncrypted } from "../run/errors.js";
import { cloneJson } from "../run/json.js";
import { loaded } from "../run/loaded.js";
import { LocalAgentRunner } from "../runner/local-agent-runner.js";
import { toErrorData } from "../wire/errors.js";
import { lostTo, type Lost } from "../wire/lost.js";
import type { RunRequest, SyncState } from "../wire/shapes.js";
import { browserNetwork, type Network } from "../platform/network.js";
import { placements, recoveryBy } from "./agent-policies.js";
import { AgentRegistry } from "./agents.js";
import { Callers } from "./callers.js";
import { openBroadcastChannel } from "../platform/channel.js";
import { DEFAULT_DB_NAME, lockedChannelName, userDbName } from "../platform/names.js";
import { encryptionOf } from "../storage/encryption-option.js";
import { debugOf, type Debug } from "./debug.js";
import type { Encryption } from "../storage/encryption/encryption.js";
import type { SyncOptions } from "../sync/options.js";
import type { SyncStart } from "../sync/start.js";
import { errorResponse } from "./error-response.js";
import type { EventFilter } from "./event-filter.js";
import { internalError, json } from "./http/responses.js";
import type { LockChanged, Locking } from "./locking.js";
import { isRequest, isResponse, refusalOf } from "./middleware.js";
import { tell } from "./metrics.js";
import { checkRuntimeOptions, type AgentRuntimeOptions } from "./options.js";
import { plainMessages } from "./plain-messages.js";
import type { Admitted, Answer, Incoming, ResolvedRequest, ServedRun } from "./request.js";
import { RunnerHome } from "./runner-home.js";
import type { Runtime, RuntimeHealth } from "./runtime.js";
import type { RuntimeRuns, RuntimeRunsParts } from "./runs.js";
import { startWaiting } from "./start-waiting.js";
import type { WaitingRuns } from "./waiting/waiting-runs.js";

/** How long the code that keeps devices in step is waited for, and the space where this host leaves it, in ms. */
const SYNC_MS = 5_000;
/** How long a host that connects waits to hear which agents servers have, and how long after it has connected, in ms. */
const HEARD_MS = 2_000;
const ANSWER_MS = 1_000;

/**
 * The core behind every entry point: before-middleware, agents, runner, runs, then the after-middleware.
 */
export class RuntimeCore {
  readonly agents: AgentRegistry;
  readonly home: RunnerHome;
  readonly debug: Debug;
  /** Never throws. */
  readonly logger: Required<Logger>;
  /** Reports what readers of older protocol versions do not get. */
  readonly lost: Lost;
  readonly warnOnce: Logger["warn"];
  private readonly network: Network;
  readonly callers = new Callers();
  private readonly outbox = new WeakMap<LocalAgentRunner, Lazy<WaitingRuns>>();
  private readonly runs: Lazy<RuntimeRuns>;
  /** Told of each change of the lock; set by who serves tabs. */
  lockChanged: LockChanged = () => undefined;
  /** Undefined where nothing is encrypted. */
  private readonly lockingHere: Lazy<Locking> | undefined;
  private readonly synced = new ReplaySubject<SyncState>(1);
  private isOnline = false;
  /** Until then servers may not have said which agents they have, by the clock of this context. */
  private heardBy = 0;
  private closed = false;
  /** Resolves when the runner that is closed has left its space. */
  private left: Promise<void> = Promise.resolve();
  /** Filter failures already reported to metrics. */
  private readonly filterFailures = new WeakSet<object>();

  /** @throws RunnerError `agent-not-cloneable`, `invalid-input` */
  constructor(
    private readonly runtime: Runtime,
    readonly options: AgentRuntimeOptions,
    /** It executes what the devices of its space ask for. */
    private readonly server?: Omit<SyncStart, "tell">,
  ) {
    checkRuntimeOptions(options, { isServer: server !== undefined });
    const { agents, runner, dbName, stopGraceMs, maxRunMs, limits, openTimeoutMs, memoryFallback, logger } = options;
    const { eventLimits, recordInput, unrecordedRuns, user } = options;
    const hasServers = options.sync !== undefined && server === undefined;
    this.agents = new AgentRegistry(agents, hasServers ? placements(options.agentPolicies) : undefined);
    this.agents.heard = (agentId) => this.heard(agentId);
    const encryption = options.encryption && encryptionOf(options.encryption);
    const recovers = recoveryBy(options.agentPolicies);
    this.home = new RunnerHome(
      defined({
        runner,
        dbName,
        user,
        stopGraceMs,
        maxRunMs,
        // With other devices, what leaves this one is no deletion.
        limits: hasServers ? undefined : limits,
        eventLimits,
        recordInput,
        openTimeoutMs,
        memoryFallback,
        logger,
      }),
      {
        ...(encryption !== undefined && { encryption }),
        ...(recovers !== undefined && { made: (made) => made.recoverBy(recovers) }),
        // Not for a server's: what waits there, tabs have added.
        opened: (opened) => {
          startWaiting(opened.waiting, this.waitingOf(opened));
          if (options.sync !== undefined) this.startSync(opened, options.sync, encryption);
        },
      },
    );
    this.lockingHere =
      encryption &&
      new Lazy(async () => {
        const { Locking } = await loaded(import("./locking.js"));
        const channel = openBroadcastChannel(lockedChannelName(userDbName(user, dbName ?? DEFAULT_DB_NAME)));
        return new Locking(await encryption.get(), this.home, channel, (...change) => this.lockChanged(...change));
      });
    this.logger = safeLogger(logger ?? consoleLogger);
    this.lost = lostTo(this.logger);
    this.warnOnce = warnOnce(this.logger);
    this.debug = debugOf(options.debug);
    this.network = options.network ?? browserNetwork;
    const parts: RuntimeRunsParts = {
      agents: this.agents,
      home: this.home,
      settings: options,
      metrics: options.metrics,
      debug: this.debug,
      observes: options.afterRequestMiddleware !== undefined,
      bounds: runner instanceof LocalAgentRunner ? runner.bounds : defined({ stopGraceMs, maxRunMs, eventLimits }),
      unrecordedRuns,
      policies: options.agentPolicies,
      network: this.network,
      inStep: () => inTime(firstValueFrom(this.synced), SYNC_MS).catch(() => undefined),
      logger: this.logger,
    };
    this.runs = new Lazy(async () => {
      const { RuntimeRuns } = await loaded(import("./runs.js"));
      if (this.closed) throw new RunnerError("closed");
      return new RuntimeRuns(parts);
    });
  }

  /**
   * Admits a request, answers it, and calls the after-middleware.
   *
   * @param failed the response that the after-middleware sees if `answer` threw
   * Errors: the Response of a middleware that refused it; else what `answer` threw.
   */
  async serve<T>(
    incoming: Incoming,
    answer: (request: Admitted) => Promise<Answer<T>>,
    failed: (error: unknown) => Response = errorResponse,
  ): Promise<T> {
    const admitted = await this.admit(incoming);
    this.debug.lifecycle?.("request", { path: incoming.path });
    try {
      const answered = await answer(admitted);
      this.tellAfter(admitted, answered);
      return answered.value;
    } catch (error) {
      // Anything may be thrown; a WeakSet has no primitives.
      const isTold = isResponse(error) || this.filterFailures.has(error as object);
      if (!isTold) this.tellError(incoming.path, error);
      this.tellAfter(admitted, {
        value: undefined,
        response: () => (isResponse(error) ? error.clone() : failed(error)),
      });
      throw error;
    }
  }

  /** Whether a hook sees requests. */
  get isWatched(): boolean {
    const { beforeRequestMiddleware, afterRequestMiddleware, filterEvent } = this.options;
    return [beforeRequestMiddleware, afterRequestMiddleware, filterEvent].some((hook) => hook !== undefined);
  }

  /** Loads what runs need ahead of the first one. If that fails, the first run tries again. */
  preload(): void {
    this.runs.get().catch(() => undefined);
    this.agents.preload();
    const { local } = this.home;
    // Runs of agents with policies may wait: for the network, or to go on with a broken one.
    if (this.options.agentPolicies === undefined || local === undefined) return;
    this.waitingOf(local)
      .get()
      .then((waiting) => waiting.preload())
      .catch(() => undefined);
  }

  /**
   * Starts a run, or attaches to the one with this runId.
   *
   * @param how see `RuntimeRuns.start`
   * Errors: RunnerError (`cancelled` if it was waiting, and waits no more or is not the first); what setting the agent up threw.
   */
  async startRun(...how: Parameters<RuntimeRuns["start"]>): Promise<ServedRun> {
    return (await this.runs.get()).start(...how);
  }

  /** The runs that wait in a runner's log. Loaded when there is one. */
  waitingOf(runner: LocalAgentRunner): Lazy<WaitingRuns> {
    const known = this.outbox.get(runner);
    if (known !== undefined) return known;
    const made = new Lazy(async () => {
      const { waitingRuns } = await loaded(import("./waiting/waiting.js"));
      return waitingRuns(this, runner, this.network);
    });
    this.outbox.set(runner, made);
    return made;
  }

  /** Devices in step: the newest status first. Nothing where there are no others. */
  get sync$(): Observable<SyncState> {
    return this.synced;
  }

  private startSync(runner: LocalAgentRunner, options: SyncOptions, encryption: Lazy<Encryption> | undefined): void {
    const told = (status: SyncState): void => {
      this.agents.servers = status.devices.flatMap(({ isThis, agents = [] }) => (isThis ? [] : agents));
      const isOnline = status.is === "online";
      // Each connection has so long to be made, and then to be heard by.
      if (isOnline !== this.isOnline) this.heardBy = systemClock.elapsed() + (isOnline ? ANSWER_MS : HEARD_MS);
      this.isOnline = isOnline;
      this.synced.next(status);
    };
    const maxThreads = this.server === undefined ? this.options.limits?.maxThreads : undefined;
    const start: SyncStart = { encryption, maxThreads, ...this.server, tell: told };
    this.heardBy = systemClock.elapsed() + HEARD_MS;
    const ended = loaded(import("../sync/start.js"))
      .then(({ startSync }) => startSync(runner, options, start))
      .catch((error: unknown) => this.logger.error(`Devices are not in step: ${messageOf(error)}`, loggable(error)));
    this.left = ended;
    const begun = Promise.race([firstValueFrom(this.synced), ended]);
    runner.awaitDevices(inTime(begun, SYNC_MS).catch(() => undefined));
  }

  /** Waits for a server that has the agent, as long as those that are online may not have said so yet. */
  private async heard(agentId: string): Promise<void> {
    // Devices are heard from then on.
    if ((await this.home.open().catch(() => undefined)) === undefined) return;
    const ms = this.heardBy - systemClock.elapsed();
    const isKnown = ({ is }: SyncState): boolean =>
      this.agents.servers.includes(agentId) || is === "offline" || is === "refused";
    await firstValueFrom(this.synced.pipe(takeUntil(systemClock.after(ms)), first(isKnown, undefined)));
  }

  /** It executes what the devices of its space ask for, and has no pages. */
  get isServer(): boolean {
    return this.server !== undefined;
  }

  /** The runtime was made with encryption. */
  get isEncrypted(): boolean {
    return this.lockingHere !== undefined;
  }

  /** Locks and unlocks the database. Errors: RunnerError `invalid-input` where nothing is encrypted. */
  locking(): Promise<Locking> {
    if (this.lockingHere !== undefined) return this.lockingHere.get();
    return Promise.reject(notEncrypted());
  }

  /** Headers for a third-party runner's `connect`: those that a run would send upstream. */
  async headersFor({ request }: Admitted, agentId: string): Promise<Record<string, string>> {
    const { configurator } = await this.runs.get();
    return configurator.headersOf({ agent: await this.agents.clone(agentId, request), request });
  }

  /** Starts an unrecorded run. */
  async suggest(request: Admitted, run: RunRequest): Promise<ServedRun> {
    return (await this.runs.get()).suggest(request, run);
  }

  /** As `AgentRunner.stop`, but also stops unrecorded runs. Without a `runId`: whatever runs in the thread. */
  async stop(stop: { readonly threadId: string; readonly runId?: string }): Promise<boolean> {
    const { made } = this.runs;
    const stopped = made?.stopUnrecorded(stop) === true;
    if (stopped && stop.runId !== undefined) return true;
    const runner = await this.home.open();
    if (stop.runId !== undefined && (await this.cancelWaiting({ ...stop, runId: stop.runId }))) return true;
    const isLoading = this.runs.made?.stopLoading(stop) === true;
    if ((await runner.stop(stop)) !== false || isLoading || stopped) return true;
    // A run that waits for the code of runs is known once that is there. No other stop waits for it.
    return made === undefined && (await this.runs.begun?.catch(() => undefined)) !== undefined && this.stop(stop);
  }

  /** Where nothing of waiting runs is loaded, this host knows of none. */
  private async cancelWaiting({ threadId, runId }: { readonly threadId: string; readonly runId: string }) {
    const { local } = this.home;
    const waiting = local && (await this.waitingOf(local).begun?.catch(() => undefined));
    if (waiting === undefined) return false;
    // Without the key nobody can tell what waits: what runs is stopped all the same (L11).
    return waiting.cancel(threadId, runId).catch((error: unknown) => {
      if (RunnerError.is(error, "locked") || RunnerError.is(error, "wrong-key")) return false;
      throw error;
    });
  }

  /** Ends all runs and releases the runner. */
  async close(): Promise<void> {
    // Where the code of runs is still loading, nothing runs yet, and nothing will.
    this.closed = true;
    const runs = this.runs.made;
    this.lockingHere?.made?.close();
    await Promise.all([runs?.close(), this.home.close(async () => runs?.endRecorded())]);
    await inTime(this.left, SYNC_MS).catch(() => undefined);
  }

  /** See {@link Runtime}. */
  async health(): Promise<RuntimeHealth> {
    try {
      await this.home.open();
      const { local } = this.home;
      return {
        status: "ok",
        liveThreads: this.runs.made?.live ?? 0,
        ...(local && { durability: local.durability, dbName: local.dbName, hostId: local.hostId }),
      };
    } catch (error) {
      return { status: "failed", error: toErrorData(error) };
    }
  }

  /**
   * The HTTP response for a thrown error. Unexpected errors are logged, and the caller gets only the log id: factories,
   * hooks and set-up may throw secrets. With `debug` the caller gets the error itself.
   *
   * @param failure the route's own text for a failure
   */
  failureResponse(path: string, error: unknown, failure?: string): Response {
    const told = errorResponse(error, failure);
    return told.status === 500 && !isOurs(error) ? (this.mute(path, error) ?? told) : told;
  }

  /** @returns undefined if the caller may see the error */
  private mute(path: string, error: unknown): Response | undefined {
    const { debug = false } = this.options;
    const id = randomId();
    this.logger.error(`[ag-ui-local-runtime] A request failed (${id})`, { path }, loggable(error));
    return debug === false ? internalError(id) : undefined;
  }

  /** Filters events for readers of this request; undefined: no filter. */
  filterFor(request: Admitted, threadId: string): EventFilter | undefined {
    const { filterEvent } = this.options;
    const { event: print } = this.debug;
    const { path, resolved } = request;
    if (filterEvent === undefined) {
      return print && ((event) => (print(event, { path, threadId }), event));
    }
    return (event) => {
      let shown: BaseEvent | undefined;
      try {
        shown = checkShown(filterEvent(cloneJson(event), { request: request.request(), path, resolved, threadId }));
      } catch (error) {
        // Its message may contain what the filter should hide.
        const failure = new RunnerError("host-failed", { threadId }, { message: "filterEvent failed", cause: error });
        this.tellError(path, error);
        this.filterFailures.add(failure);
        throw failure;
      }
      if (shown !== undefined) print?.(shown, { path, threadId });
      return shown;
    };
  }

  /** A value of a thread, as readers of this request may see it. */
  shown<T>(request: Admitted, threadId: string, value: T, filtered: (value: T, filter: EventFilter) => T): T {
    const filter = this.filterFor(request, threadId);
    return filter ? filtered(value, filter) : value;
  }

  /** @throws Response */
  private async admit(incoming: Incoming): Promise<Admitted> {
    const { beforeRequestMiddleware } = this.options;
    const resolved = this.resolved(incoming);
    if (beforeRequestMiddleware === undefined) return { ...incoming, resolved, isReplaced: false };
    const { path } = incoming;
    const request = incoming.request();
    let said: Request | Response | undefined;
    try {
      said = checkSaid(await beforeRequestMiddleware({ runtime: this.runtime, request, path, resolved }));
    } catch (thrown) {
      const why = isResponse(thrown) ? unreadOr(thrown) : thrown;
      const refusal = refusalOf(why) ?? this.mute(path, why) ?? hookFailed(why);
      this.debug.lifecycle?.("refused", { path, status: refusal.status });
      this.tellError(path, why);
      throw refusal;
    }
    if (isResponse(said)) throw said;
    const shown = said ?? request;
    return { ...incoming, resolved, request: () => shown, isReplaced: shown !== request };
  }

  private resolved({ asked }: Incoming): ResolvedRequest {
    const { threadId } = asked;
    return {
      ...asked,
      agentIds: async () => {
        if (threadId === undefined) return undefined;
        const runner = await this.home.open();
        return runner instanceof LocalAgentRunner ? runner.agentIds(threadId) : undefined;
      },
    };
  }

  private tellAfter({ path, resolved }: Admitted, { response, ended }: Answer<unknown>): void {
    const { afterRequestMiddleware: after } = this.options;
    if (after === undefined) return;
    // Taken now, before anyone reads the response body.
    const shown = this.responseShown(path, response);
    void (async () => {
      try {
        const { messages, threadId, runId } = (await ended) ?? {};
        await after({
          runtime: this.runtime,
          response: shown,
          path,
          resolved,
          // An unreadable thread yields no messages.
          messages: plainMessages((await messages?.().catch(() => [])) ?? []),
          ...defined({ threadId, runId }),
        });
      } catch (error) {
        this.tellError(path, error);
      }
    })();
  }

  /** A tab's answer need not be JSON; the after-middleware is called anyway. */
  private responseShown(path: string, response: () => Response): Response {
    try {
      return response();
    } catch (error) {
      this.tellError(path, error);
      return new Response(null);
    }
  }

  private tellError(path: string, error: unknown): void {
    const { metrics } = this.options;
    tell(metrics, "error", { path, error });
  }
}

/**
 * Any other return value is a mistake and may have been meant as a refusal.
 *
 * @throws TypeError
 */
function checkSaid(said: unknown): Request | Response | undefined {
  if (said === undefined || said === null) return undefined;
  if (isResponse(said)) return checkUnread(said);
  if (isRequest(said)) return said;
  throw new TypeError("beforeRequestMiddleware must return nothing, a Request or a Response");
}

/** Rejects a Response whose body an earlier request has read. @throws TypeError */
function checkUnread(answer: Response): Response {
  if (!answer.bodyUsed && answer.body?.locked !== true) return answer;
  throw new TypeError("beforeRequestMiddleware must answer each request by a new Response");
}

/** The thrown Response, or the error if it cannot be sent. */
function unreadOr(answer: Response): unknown {
  try {
    return checkUnread(answer);
  } catch (error) {
    return error;
  }
}

/** Whether the error's message contains no foreign text. */
const isOurs = (error: unknown): boolean =>
  RunnerError.is(error) && error.code !== "host-failed" && error.cause === undefined;

const hookFailed = (thrown: unknown): Response =>
  json({ error: "beforeRequestMiddleware failed", message: messageOf(thrown) }, 500);

/** @throws TypeError if it is not an event (a Promise, for example) */
function checkShown(shown: unknown): BaseEvent | undefined {
  if (shown === undefined || shown === null) return undefined;
  if (typeof (shown as BaseEvent).type === "string") return shown as BaseEvent; // `type` is all that an event must have
  throw new TypeError("filterEvent must return an event or nothing, and no Promise");
}
