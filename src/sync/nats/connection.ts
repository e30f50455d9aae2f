import type { ConnectionOptions } from "@nats-io/nats-core";
import { BehaviorSubject, type Observable } from "rxjs";
import { abortWith, onAbort, sharedController } from "../../platform/abort.js";
import { Bell, ringOrSilence } from "../../platform/bell.js";
import { browserNetwork, type Network } from "../../platform/network.js";
import { messageOf } from "../../run/errors.js";
import type { SpaceState } from "../space.js";
import { isForbidden, isRefused } from "./errors.js";
import { authenticatorOf, type NatsSpaceOptions } from "./options.js";
import { packages } from "./packages.js";
import { inboxPrefix, SpaceLog, type LogOptions } from "./space-log.js";

/** Reconnect backoff, in ms: doubled from the first to the last, with jitter. */
const FIRST_MS = 250;
const LAST_MS = 30_000;
/** A connection that lasted as long was a good one, in ms: the backoff begins anew after it. */
const STEADY_MS = 10_000;
/** How long the function that gives credentials may take, in ms: somebody may have to log in. */
const CREDENTIALS_MS = 30_000;
/** How often the connection is looked at while nothing comes, in ms; it has ended after two without an answer. */
const PING_MS = 15_000;

/** How long to wait before attempt `failures + 1`, in ms. `random`: 0 to 1, so that not all devices come at once. */
export const backoffMs = (failures: number, random: number): number =>
  Math.min(LAST_MS, FIRST_MS * 2 ** failures) * (0.5 + random / 2);

/**
 * One connection after the other, for ever. The library's own reconnection is not used: it keeps the credentials of the
 * first connection, and hides from readers that something may have happened in between.
 */
export class Connection {
  private readonly state = new BehaviorSubject<SpaceState>({ is: "connecting" });
  private readonly closed = sharedController();
  private readonly bell = new Bell();
  private readonly running: Promise<void>;
  private log: SpaceLog | undefined;

  constructor(
    private readonly options: NatsSpaceOptions,
    private readonly logOptions: LogOptions,
    /** Called with each one before it is used. */
    private readonly onOpened: (log: SpaceLog) => void,
    private readonly network: Network = browserNetwork,
    /** Fixed credentials are tried again, too. */
    private readonly isServer = false,
  ) {
    this.network.onChange(() => this.bell.ring(), this.closed.signal);
    this.running = this.run();
  }

  get state$(): Observable<SpaceState> {
    return this.state.asObservable();
  }

  /** Undefined: there is none now. */
  get current(): SpaceLog | undefined {
    return this.log?.signal.aborted === false ? this.log : undefined;
  }

  /** The current one, or the next. @returns undefined when `signal` has aborted */
  async online(signal: AbortSignal): Promise<SpaceLog | undefined> {
    for (;;) {
      const seen = this.bell.count;
      if (signal.aborted) return undefined;
      const { current } = this;
      if (current !== undefined) return current;
      await this.bell.wait(seen, signal);
    }
  }

  async close(): Promise<void> {
    this.closed.abort();
    await this.log?.close();
    await this.running;
    this.state.complete();
  }

  private async run(): Promise<void> {
    const { signal } = this.closed;
    const { clock } = this.logOptions;
    for (let failures = 0; !signal.aborted; failures++) {
      try {
        const log = await this.open();
        const since = clock.elapsed();
        if (signal.aborted) await log.close();
        else await this.use(log);
        if (clock.elapsed() - since > STEADY_MS) failures = 0;
        // Credentials that have expired may be renewed at the next attempt.
        if (isForbidden(log.endedBy)) throw log.endedBy;
        this.offline(log.endedBy);
      } catch (error) {
        if (isRefused(error)) {
          this.state.next({ is: "refused", message: messageOf(error) });
          // Nothing changes by itself; a function may give others the next time. Nobody reloads a server.
          if (typeof this.options.credentials !== "function" && !this.isServer) return;
          failures = Infinity;
        } else this.offline(error);
      }
      if (!signal.aborted) await this.pause(failures);
      if (failures === Infinity) failures = 0;
    }
  }

  /** Until it ends. */
  private async use(log: SpaceLog): Promise<void> {
    this.log = log;
    this.state.next({ is: "online" });
    this.bell.ring();
    await aborted(log.signal);
    this.log = undefined;
  }

  private async open(): Promise<SpaceLog> {
    const { options, logOptions } = this;
    const modules = await packages.get();
    const { core } = modules;
    const authenticator = await this.inTime(authenticatorOf(options, core), "There are no credentials yet");
    const connect: (given: ConnectionOptions) => ReturnType<typeof core.wsconnect> = options.connect ?? core.wsconnect;
    const connecting = connect({
      servers: [options.servers].flat(),
      name: "ag-ui-local-runtime",
      reconnect: false,
      ignoreClusterUpdates: true,
      timeout: logOptions.timeoutMs,
      pingInterval: PING_MS,
      // Answers that other spaces' permissions do not reach.
      inboxPrefix: inboxPrefix(logOptions.space),
      ...(authenticator !== undefined && { authenticator }),
    });
    const nc = await Promise.race([connecting, aborted(this.closed.signal)]);
    if (nc === undefined) {
      void connecting.then((late) => late.close()).catch(() => undefined);
      throw new Error("It was closed");
    }
    const log = new SpaceLog(nc, modules, logOptions);
    try {
      await log.ensure();
      this.onOpened(log);
      return log;
    } catch (error) {
      log.drop(error);
      throw error;
    }
  }

  /** Errors: `late`, also when this is closed meanwhile */
  private async inTime<T>(work: Promise<T>, late: string): Promise<T> {
    const waiting = abortWith(this.closed.signal);
    const over = this.logOptions.clock.after(CREDENTIALS_MS, waiting.signal).then(() => {
      throw new Error(late);
    });
    return Promise.race([work, over]).finally(() => waiting.abort());
  }

  private offline(error: unknown): void {
    this.state.next({ is: "offline", ...(error !== undefined && { message: messageOf(error) }) });
  }

  /** Until the next attempt: at once when the network has changed. */
  private async pause(failures: number): Promise<void> {
    const ms = backoffMs(failures, Math.random());
    await ringOrSilence(this.bell, this.bell.count, this.logOptions.clock, ms, this.closed.signal);
  }
}

const aborted = (signal: AbortSignal): Promise<undefined> =>
  new Promise((resolve) => onAbort(signal, () => resolve(undefined)));
