import { HttpAgent as Client1, type HttpAgentConfig } from "@ag-ui/client";
import type { Interrupt, Message, RunAgentInput, State } from "@ag-ui/client";
import { HttpAgent as Client0 } from "ag-ui-client-0";
import { expectSame } from "../../../../src/conformance/expect.js";
import { fetchOf, type WayIn } from "./way-in.js";

/** The released clients that the contract is tried out with: the last one before AG-UI 1.0, and 1.0. */
export const CLIENTS = ["0.0.59", "1.0.0"] as const;
export type ClientVersion = (typeof CLIENTS)[number];

/** What a client has after a run. */
export interface ClientView {
  readonly messages: readonly Message[];
  readonly state: State;
  readonly interrupts: readonly Interrupt[];
}

/** A released client, and what its subscribers were told. */
export class Client {
  /** Types of the events that it was told of. */
  readonly types: string[] = [];
  /** Of each RUN_STARTED. */
  readonly runIds: string[] = [];
  /** The run that each message is of, as front ends (CopilotKit's) note it. */
  readonly runOf = new Map<string, string>();
  /** Why runs failed for it. */
  readonly failures: string[] = [];
  private readonly agent: Client1;
  private seen: (() => void)[] = [];

  constructor(
    readonly version: ClientVersion,
    way: WayIn,
    path: string,
    { threadId, messages = [] }: { readonly threadId: string; readonly messages?: readonly Message[] },
  ) {
    const config: HttpAgentConfig = {
      url: way.url(path),
      threadId,
      initialMessages: [...messages],
      fetch: fetchOf(way),
    };
    // Its types are nominally others; what is called here is the same in both.
    const old = (): Client1 => new Client0(config as ConstructorParameters<typeof Client0>[0]) as unknown as Client1;
    this.agent = version === "1.0.0" ? new Client1(config) : old();
    this.agent.subscribe({
      onEvent: ({ event }) => {
        this.types.push(event.type === "CUSTOM" ? `CUSTOM ${String(event["name"])}` : event.type);
        for (const look of this.seen) look();
      },
      onRunStartedEvent: ({ event }) => void this.runIds.push(event.runId),
      onMessagesSnapshotEvent: ({ event }) => {
        for (const { id } of event.messages) if (!this.runOf.has(id)) this.runOf.set(id, this.runIds.at(-1)!);
      },
      onNewMessage: ({ message }) => {
        const runId = this.runIds.at(-1);
        if (runId !== undefined) this.runOf.set(message.id, runId);
      },
      onRunErrorEvent: ({ event }) => void this.failures.push(String(event["message"])),
      onRunFailed: ({ error }) => void this.failures.push(error.message),
    });
  }

  get view(): ClientView {
    const { messages, state, pendingInterrupts: interrupts } = this.agent;
    return { messages, state: state as State, interrupts };
  }

  say(id: string, content: string): void {
    this.agent.addMessage({ id, role: "user", content });
  }

  /** Errors: what makes `runAgent` reject. */
  async run(input: Partial<RunAgentInput> = {}): Promise<void> {
    await quietly(() => this.agent.runAgent(input));
  }

  /** The reader goes; what it reads goes on. */
  leave(): void {
    this.agent.abortRun();
  }

  /** Until its subscribers were told of so many events of this type. */
  async told(type: string, times = 1): Promise<void> {
    const isTold = (): boolean => this.types.filter((told) => told === type).length >= times;
    if (isTold()) return;
    await new Promise<void>((resolve) => {
      this.seen.push(() => isTold() && resolve());
    });
  }

  expectNoFailure(): void {
    expectSame(this.failures, [], `nothing must look like a failure for @ag-ui/client ${this.version}`);
  }
}

let quiet = 0;
let voices: Pick<Console, "warn" | "error"> | undefined;

/** Clients print what they drop, and each failure. */
export async function quietly<T>(work: () => Promise<T>): Promise<T> {
  if (quiet++ === 0) {
    voices = { warn: console.warn, error: console.error };
    console.warn = console.error = () => undefined;
  }
  try {
    return await work();
  } finally {
    if (--quiet === 0) Object.assign(console, voices);
  }
}
