export interface NatsServers {
  /** `nats://`, by number. */
  readonly urls: readonly string[];
  /** `ws://`, by number. */
  readonly wsUrls: readonly string[];
  /** Where they keep what they have, and their logs. */
  readonly folder: string;
  /** Of the servers, as they name themselves. */
  readonly names: readonly string[];
  /** Of their processes, by number. */
  pids(): readonly number[];
  /** Resolves when it has ended. Default: the first, by SIGKILL. */
  kill(at?: number, signal?: NodeJS.Signals): Promise<void>;
  /** On the same ports, with the same disk. Resolves when it is ready; a server of a cluster may also stay behind. */
  restart(at?: number): Promise<void>;
  /** All end at once, lose their disks, and start again. Resolves when they are ready. */
  wipe(): Promise<void>;
  stop(): Promise<void>;
}
export function findNats(): string | undefined;
export function startNats(options?: { readonly servers?: 1 | 3; readonly config?: string }): Promise<NatsServers>;
