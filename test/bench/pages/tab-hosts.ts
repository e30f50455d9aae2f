import { connectRuntime, type RuntimeConnection } from "ag-ui-local-runtime/client";
import { filter, firstValueFrom } from "rxjs";
import { HostLink } from "../../../src/client/host-link.js";
import {
  clockOffsetBy,
  nameOf,
  questionsChannel,
  say,
  type Commit,
  type HostConfig,
  type Probe,
  type Question,
} from "./stamps.js";

interface Host {
  readonly runtime: RuntimeConnection;
  /** Past the agents; made when it is first asked for, so that a tab without it connects once. */
  readonly link: HostLink;
  readonly questions: BroadcastChannel;
  /** When this tab began to connect to it, on the clock of `performance.now()`. */
  readonly since: number;
  close(): Promise<void>;
}

const hosts = new Map<string, Host>();

// Bundlers know workers by `new URL` inside the constructor, so each is written out.
const sharedOf = (config: HostConfig) => (): SharedWorker =>
  config.lazy
    ? new SharedWorker(new URL("./lazy-host.worker.ts", import.meta.url), { type: "module", name: nameOf(config) })
    : new SharedWorker(new URL("./host.worker.ts", import.meta.url), { type: "module", name: nameOf(config) });

/** How the bench connects to a host. */
export const optionsOf = (config: HostConfig) => ({ hosts: { shared: sharedOf(config) }, extendedLifetime: false });
/** The same, past the agents. */
export const linkTo = (config: HostConfig): HostLink =>
  new HostLink({ ...optionsOf(config), startTimeoutMs: 15_000, callTimeoutMs: 15_000 });

export const hostOf = (key: string): Host => {
  const host = hosts.get(key);
  if (host === undefined) throw new Error(`not connected: ${key}`);
  return host;
};

const answer = <T>(questions: BroadcastChannel, question: Question): Promise<T> =>
  new Promise((resolve) => {
    questions.onmessage = ({ data }: MessageEvent<T>) => resolve(data);
    say(questions, question);
  });

/** Resolves when everything that was sent to the host before has been taken by it. */
export async function flushed({ runtime }: Host): Promise<void> {
  await runtime.threads.list({ limit: 1 });
  await runtime.threads.list({ limit: 1 });
}

/** How far the host's clock is from this tab's, in ms. */
export const clockOffset = (key: string): Promise<number> =>
  clockOffsetBy(async () => (await answer<{ clock: number }>(hostOf(key).questions, "clock")).clock);

/** The id of a host that a runtime is connected to, once it is. */
export async function bootIdOf({ status$ }: RuntimeConnection): Promise<string> {
  const status = await firstValueFrom(status$.pipe(filter((it) => it.is === "connected")));
  return status.bootId;
}

/** The same, of a host that this tab was connected to. */
export const hostIdOf = (key: string): Promise<string> => bootIdOf(hostOf(key).runtime);

/** What the bench asks of a tab about its hosts. */
export const hostCalls = {
  clockOffset,
  hostIdOf,

  /** Connects this tab to a host; `key` names the connection from then on. */
  async connect(key: string, config: HostConfig): Promise<void> {
    const since = performance.now();
    const runtime = connectRuntime(optionsOf(config));
    const questions = new BroadcastChannel(questionsChannel(config));
    let link: HostLink | undefined;
    hosts.set(key, {
      runtime,
      get link() {
        return (link ??= linkTo(config));
      },
      questions,
      since,
      async close() {
        await runtime.close();
        await link?.close();
        questions.close();
      },
    });
    await hostIdOf(key);
  },

  async disconnect(key: string): Promise<void> {
    await hostOf(key).close();
    hosts.delete(key);
  },

  /** As `clockOffset`, of a host that this tab is not connected to. */
  async clockOffsetTo(config: HostConfig): Promise<number> {
    const questions = new BroadcastChannel(questionsChannel(config));
    const offset = await clockOffsetBy(async () => (await answer<{ clock: number }>(questions, "clock")).clock);
    questions.close();
    return offset;
  },

  /** What the host has committed since the last call, in order. */
  async commits(key: string): Promise<readonly Commit[] | undefined> {
    return (await answer<{ commits?: readonly Commit[] }>(hostOf(key).questions, "commits")).commits;
  },

  /** What the host's probe counted since the last call. */
  async probe(key: string): Promise<Probe | undefined> {
    return (await answer<{ probe?: Probe }>(hostOf(key).questions, "probe")).probe;
  },
};
