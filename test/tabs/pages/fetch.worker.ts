import { EventType } from "@ag-ui/core";
import type { BeforeRequestContext } from "ag-ui-local-runtime/runtime";
import { defineAgent, serveRuntime } from "ag-ui-local-runtime/worker";
import { obeyLab } from "./scripted-control.js";
import { ownName } from "./worker-name.js";

/** An answer that is made up piece by piece, and how its request ended. */
class Open {
  aborted = false;
  cancelled = false;
  controller!: ReadableStreamDefaultController<Uint8Array>;
  answer!: () => void;
  readonly answered = new Promise<void>((resolve) => (this.answer = resolve));
  readonly body = new ReadableStream<Uint8Array>({
    start: (controller) => void (this.controller = controller),
    cancel: () => void (this.cancelled = true),
  });

  response({ signal }: Request): Response {
    signal.addEventListener("abort", () => (this.aborted = true));
    return new Response(this.body, { headers: { "content-type": "text/event-stream" } });
  }
}

const open = new Map<string, Open>();

/** Answers that the page makes up piece by piece, and sees from the inside. Others are the runtime's to answer. */
async function scripted({ request, path }: BeforeRequestContext): Promise<Response | undefined> {
  const url = new URL(request.url);
  const id = url.searchParams.get("id") ?? "";
  const its = open.get(id) ?? new Open();
  open.set(id, its);
  switch (path) {
    case "/echo":
      return Response.json({ method: request.method, own: request.headers.get("x-own"), text: await request.text() });
    case "/open":
      return its.response(request);
    case "/late": {
      const response = its.response(request);
      await its.answered;
      return response;
    }
    case "/answer":
      its.answer();
      return new Response(null, { status: 204 });
    case "/push":
      if (!its.cancelled) its.controller.enqueue(new Uint8Array(await request.arrayBuffer()));
      return new Response(null, { status: 204 });
    case "/end":
      its.controller.close();
      return new Response(null, { status: 204 });
    case "/state":
      return Response.json({ aborted: its.aborted, cancelled: its.cancelled });
    case "/bytes":
      return new Response(new Uint8Array(Number(url.searchParams.get("n"))).fill(7));
    default:
      return undefined;
  }
}

obeyLab();
/** Answers at once; the answer's id is known before. */
const answerer = defineAgent(async function* ({ runId }) {
  const messageId = `${runId}-a`;
  yield { type: EventType.TEXT_MESSAGE_START, messageId, role: "assistant" };
  yield { type: EventType.TEXT_MESSAGE_CONTENT, messageId, delta: "answer" };
  yield { type: EventType.TEXT_MESSAGE_END, messageId };
});

serveRuntime({ agents: { answerer }, dbName: ownName().split("#")[0]!, beforeRequestMiddleware: scripted });
