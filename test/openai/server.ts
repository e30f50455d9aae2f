import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/*
 * A server that speaks the chat protocol of OpenAI (streaming), as scripted: also badly. It listens on loopback, and lets
 * any page ask. Pages script it by POST /script (a list of answers); GET /requests says what it was asked.
 */

export interface ScriptedCall {
  readonly id?: string;
  readonly name: string;
  /** Pieces in which the arguments are written; an object is one piece of JSON. */
  readonly args: readonly string[] | Readonly<Record<string, unknown>>;
}

/** One answer. Plain, so that it can be scripted from a page. */
export interface ScriptedAnswer {
  readonly reasoning?: readonly string[];
  /** Pieces of the text. */
  readonly text?: readonly string[];
  readonly calls?: readonly ScriptedCall[];
  /** Default: what fits. `null`: none is told. */
  readonly finish?: string | null;
  readonly usage?: {
    readonly prompt_tokens: number;
    readonly completion_tokens: number;
    readonly total_tokens: number;
  };
  /** Another answer than a stream. */
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  /** Raw text in the stream, behind everything else. */
  readonly raw?: string;
  /** Cuts the connection after this many bytes of the body. */
  readonly cutAfter?: number;
  /** Nothing more comes behind the text, and the connection stays, until `release()` or the client leaves. */
  readonly holds?: boolean;
  /** Sends the text without end, until the client leaves. */
  readonly endless?: boolean;
  /** Sends the body in single bytes. */
  readonly inBytes?: boolean;
  /** Before each piece, in ms. For benches and demos; tests hold. */
  readonly delayMs?: number;
}

/** What it was asked. */
export interface SeenRequest {
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Readonly<Record<string, unknown>>;
}

/** An answer, or how to make it of the request and its number (from 0). */
export type Script = ScriptedAnswer | ((request: SeenRequest, n: number) => ScriptedAnswer);

export interface ModelServer {
  /** Base URL of the API: `http://127.0.0.1:…/v1`. */
  readonly url: string;
  readonly requests: readonly SeenRequest[];
  /** Connections whose client left before the answer's end. */
  readonly left: number;
  /** Adds answers. The last one of all is given again and again. */
  script(...answers: readonly Script[]): void;
  /** Lets answers that hold end. */
  release(): void;
  /** Cuts all connections. */
  cut(): void;
  /** Forgets requests and script. */
  reset(): void;
  /** Resolves when `is` holds; looked at after each request, end and departure. */
  when(is: () => boolean): Promise<void>;
  close(): Promise<void>;
}

const CORS = {
  "access-control-allow-origin": "*",
  "access-control-allow-headers": "*",
  "access-control-allow-methods": "*",
  "access-control-expose-headers": "*",
};

const ECHO: Script = ({ body }) => {
  const messages = body["messages"] as readonly { readonly role: string; readonly content: unknown }[]; // as OpenAI's clients write it
  const last = messages.findLast(({ role }) => role === "user");
  return { text: ["You ", "said: ", typeof last?.content === "string" ? last.content : JSON.stringify(last?.content)] };
};

function chunk(delta: object, finish: string | null = null, more: object = {}): string {
  const choices = [{ index: 0, delta, finish_reason: finish }];
  const told = { id: "chatcmpl-1", object: "chat.completion.chunk", created: 1, model: "scripted", choices, ...more };
  return `data: ${JSON.stringify(told)}\n\n`;
}

/** The pieces of a body as the protocol has them. */
export function piecesOf(answer: ScriptedAnswer): string[] {
  const { reasoning = [], text = [], calls = [], usage, raw } = answer;
  const finish = answer.finish === undefined ? (calls.length > 0 ? "tool_calls" : "stop") : answer.finish;
  return [
    chunk({ role: "assistant", content: "" }),
    ...reasoning.map((piece) => chunk({ reasoning_content: piece })),
    ...text.map((content) => chunk({ content })),
    ...calls.flatMap(({ id, name, args }, index) => {
      const pieces = Array.isArray(args) ? (args as readonly string[]) : [JSON.stringify(args)];
      const start = { index, id: id ?? `call-${index}`, type: "function", function: { name, arguments: "" } };
      return [
        chunk({ tool_calls: [start] }),
        ...pieces.map((piece) => chunk({ tool_calls: [{ index, function: { arguments: piece } }] })),
      ];
    }),
    ...(raw === undefined ? [] : [raw]),
    ...(finish === null ? [] : [chunk({}, finish)]),
    ...(usage === undefined ? [] : [chunk({}, null, { usage, choices: [] })]),
    ...(finish === null ? [] : ["data: [DONE]\n\n"]),
  ];
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  let text = "";
  for await (const part of request) text += String(part);
  return text;
}

/** Starts it on a free port of loopback. */
export async function modelServer(): Promise<ModelServer> {
  const requests: SeenRequest[] = [];
  const open = new Set<ServerResponse>();
  const watchers = new Set<() => void>();
  let answers: Script[] = [];
  let left = 0;
  let released: (() => void)[] = [];
  const changed = (): void => watchers.forEach((look) => look());

  const stream = async (response: ServerResponse, answer: ScriptedAnswer): Promise<void> => {
    response.on("close", () => {
      if (!response.writableEnded) left++;
      changed();
    });
    const write = async (piece: string): Promise<void> => {
      if (answer.delayMs !== undefined) await new Promise((resolve) => setTimeout(resolve, answer.delayMs));
      for (const part of answer.inBytes === true ? Buffer.from(piece) : [piece]) {
        const bytes = typeof part === "number" ? Buffer.from([part]) : part;
        if (!response.destroyed && !response.write(bytes)) {
          const gone = new AbortController();
          // Rejects where the client left.
          const drained = once(response, "drain", { signal: gone.signal });
          const leave = (): void => gone.abort();
          response.once("close", leave);
          await drained.catch(() => undefined);
          response.off("close", leave);
        }
      }
    };
    const pieces = piecesOf(answer);
    if (answer.cutAfter !== undefined) {
      // The bytes are on their way before the connection ends.
      await new Promise<void>((resolve) => response.write(pieces.join("").slice(0, answer.cutAfter), () => resolve()));
      return void response.destroy();
    }
    const texts = 1 + (answer.reasoning?.length ?? 0) + (answer.text?.length ?? 0);
    for (const piece of pieces.slice(0, texts)) await write(piece);
    while (answer.endless === true && !response.destroyed) {
      for (const piece of pieces.slice(1, texts)) await write(piece);
      await new Promise((resolve) => setImmediate(resolve));
    }
    if (answer.holds === true && !response.destroyed) {
      await new Promise<void>((resolve) => {
        released.push(resolve);
        response.once("close", resolve);
      });
    }
    for (const piece of pieces.slice(texts)) if (!response.destroyed) await write(piece);
    response.end();
  };

  const answerTo = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    for (const [name, value] of Object.entries(CORS)) response.setHeader(name, value);
    const { pathname } = new URL(request.url ?? "/", "http://localhost");
    if (request.method === "OPTIONS") return void response.writeHead(204).end();
    if (pathname === "/requests") return void response.end(JSON.stringify(requests));
    const text = await bodyOf(request);
    if (pathname === "/script") {
      answers = JSON.parse(text) as ScriptedAnswer[]; // its own tests write it
      return void response.end();
    }
    if (pathname === "/release") {
      released.splice(0).forEach((resolve) => resolve());
      return void response.end();
    }
    if (pathname.endsWith("/models")) {
      return void response.end(JSON.stringify({ object: "list", data: [{ id: "scripted", object: "model" }] }));
    }
    const headers = request.headers as SeenRequest["headers"]; // none that the tests read comes twice
    const seen = { path: pathname, headers, body: JSON.parse(text) as SeenRequest["body"] };
    const n = requests.push(seen) - 1;
    const script = (answers.length > 1 ? answers.shift() : answers[0]) ?? ECHO;
    const answer = typeof script === "function" ? script(seen, n) : script;
    const { status = 200, body } = answer;
    const contentType = body === undefined ? "text/event-stream" : "application/json";
    response.writeHead(status, { "content-type": contentType, ...answer.headers });
    changed();
    if (body === undefined) await stream(response, answer);
    else response.end(body);
    changed();
  };

  const server = createServer((request, response) => {
    open.add(response);
    response.on("close", () => open.delete(response));
    answerTo(request, response).catch(() => response.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo; // it listens on a port
  return {
    url: `http://127.0.0.1:${port}/v1`,
    requests,
    get left() {
      return left;
    },
    script: (...more) => void answers.push(...more),
    release: () => released.splice(0).forEach((resolve) => resolve()),
    cut: () => open.forEach((response) => response.destroy()),
    reset: () => {
      requests.length = 0;
      answers = [];
      left = 0;
    },
    when: (is) =>
      new Promise((resolve) => {
        const look = (): void => {
          if (!is()) return;
          watchers.delete(look);
          resolve();
        };
        watchers.add(look);
        look();
      }),
    close: () =>
      new Promise((resolve) => {
        open.forEach((response) => response.destroy());
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
