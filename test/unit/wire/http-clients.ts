import { HttpAgent as Client1 } from "@ag-ui/client";
import type { Interrupt, Message, RunAgentInput, State } from "@ag-ui/client";
import { HttpAgent as Client0 } from "ag-ui-client-0";
import { vi } from "vitest";

/** The released clients that the runtime is tried out with: the last one before AG-UI 1.0, and 1.0. */
export type ClientVersion = "0.0.59" | "1.0.0";
export const CLIENTS: readonly ClientVersion[] = ["0.0.59", "1.0.0"];

/** What a client has after a run, and what it was told. */
export interface Reading {
  readonly messages: readonly Message[];
  readonly state: State;
  readonly interrupts: readonly Interrupt[];
  /** Of the events that reached its subscribers. */
  readonly types: readonly string[];
  /** As its subscribers were told at the end of each run. */
  readonly outcomes: readonly string[];
  /** What made its run fail; undefined where it took the stream for a success. */
  readonly failed?: string;
}

interface Held {
  readonly messages?: readonly Message[];
  readonly state?: State;
}

/** Runs a released client whose `fetch` is given this answer. */
export async function readBy(version: ClientVersion, answer: Response, held: Held = {}): Promise<Reading> {
  const calm = withCalmCancel(answer);
  const quiet = [
    vi.spyOn(console, "warn").mockImplementation(() => {}),
    vi.spyOn(console, "error").mockImplementation(() => {}),
  ];
  try {
    const agent = make(version, async () => calm, held);
    const types: string[] = [];
    const outcomes: string[] = [];
    let failed: string | undefined;
    await agent
      .runAgent(
        {},
        {
          onEvent: ({ event }) => void types.push(event.type),
          onRunFinishedEvent: ({ outcome }) => void outcomes.push(outcome),
        },
      )
      .catch((error: unknown) => (failed = String(error)));
    const { messages, state, pendingInterrupts: interrupts } = agent;
    return { messages, state, interrupts, types, outcomes, ...(failed !== undefined && { failed }) };
  } finally {
    for (const spy of quiet) spy.mockRestore();
  }
}

/** The body that a released client sends. */
export async function sentBy(version: ClientVersion, held: Held, input: Partial<RunAgentInput>): Promise<unknown> {
  let body: unknown;
  const agent = make(
    version,
    async (_url, init) => {
      body = JSON.parse(String(init?.body));
      return new Response("");
    },
    held,
  );
  await agent.runAgent(input);
  return body;
}

function make(version: ClientVersion, fetch: typeof globalThis.fetch, held: Held): Client1 {
  const config = {
    url: "http://runtime.test/agent/a/run",
    threadId: "t",
    initialMessages: structuredClone(held.messages ?? []) as Message[],
    initialState: structuredClone(held.state ?? {}) as State,
    fetch: (url: string, init?: RequestInit) => fetch(url, init),
  };
  if (version === "1.0.0") return new Client1(config);
  // Its types are nominally others; what is called here is the same in both.
  return new Client0(config as ConstructorParameters<typeof Client0>[0]) as unknown as Client1;
}

/**
 * The same answer, whose reader can be cancelled after it failed. Both clients cancel a body that failed and let what that
 * rejects with go unhandled, which would fail the tests whatever they are about.
 */
function withCalmCancel(answer: Response): Response {
  const { body } = answer;
  if (body === null) return answer;
  const getReader = body.getReader.bind(body) as () => ReadableStreamDefaultReader<Uint8Array>;
  body.getReader = (() => {
    const reader = getReader();
    const cancel = reader.cancel.bind(reader);
    reader.cancel = (reason) => cancel(reason).catch(() => undefined);
    return reader;
    // Of its forms, clients use the one without a mode.
  }) as typeof body.getReader;
  return answer;
}
