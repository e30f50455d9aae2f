// A model for who has none: a server of OpenAI's chat completions that answers by a script. It makes the demo's tool loop
// visible without a key. `node demo/servers/model.mjs [port]` runs it alone; the demo's own server has it at /model/v1.
import { createServer } from "node:http";
import { fileURLToPath } from "node:url";

export const MODEL = "scripted";

/** Ms between two pieces of an answer: about as fast as a local model. */
const PACE_MS = 30;
const MAX_BODY = 4_000_000;
const LOOPBACK = /^https?:\/\/(?:localhost|127\.0\.0\.1|\[::1\])(?::\d+)?$/;

/** @param {unknown} content of a message of OpenAI's */
const textOf = (content) =>
  typeof content === "string" ? content : (content ?? []).map((part) => part.text ?? "").join("\n");

const call = (name, args) => ({ name, arguments: JSON.stringify(args) });

/** What a search found, as quotes. */
function quotesOf(result) {
  try {
    const { passages } = JSON.parse(result);
    return passages
      .slice(0, 2)
      .map(({ document, section, line, text }) => {
        const place = [document, section, `line ${line}`].filter(Boolean).join(", ");
        return `> ${text.replace(/[\\`*_[\]<>|~#]/g, "\\$&")}\n>\n> *${place}*\n`;
      })
      .join("\n");
  } catch {
    return "";
  }
}

/** Whether a person refused a call that asked for it, or it failed. */
const isRefused = (result) => /^(?:Error|The user|The call)\b/.test(result);

/**
 * What the model does for a question, step by step: calls, or the answer. Each is given the results so far and the names of
 * the tools that it has.
 */
const SCRIPTS = [
  {
    asks: /keeper|lamp|lighthouse|fog|document|search|what do(?:es)? .* say/i,
    steps: [
      (_, question) => [call("searchDocuments", { query: question })],
      ([first]) => (quotesOf(first) === "" ? undefined : [call("searchDocuments", { query: "fog at night" })]),
    ],
    answer: ([first = "", second = ""]) =>
      quotesOf(first) === ""
        ? "I searched the documents and found nothing about it. Drop a text that may say more, and ask me again.\n"
        : `I searched twice. This is closest to your question:\n\n${quotesOf(first)}\n` +
          `And this is what the documents say about **fog at night**, which belongs to it:\n\n${quotesOf(second)}\n` +
          "The quotes are from the documents, word for word. A real model would now put them into its own words; I only " +
          "follow a script, so that you can watch a tool loop without a key.\n",
  },
  {
    asks: /dark|light|theme|colou?r/i,
    steps: [(_, question) => [call("setTheme", { theme: /dark/i.test(question) ? "dark" : "light" })]],
    answer: ([result = ""]) =>
      isRefused(result)
        ? `That did not work: ${result}\n`
        : `${result} I called a tool that runs in this tab, not in the worker. Ask me for the other one to change it back.\n`,
  },
  {
    asks: /name|title|rename/i,
    steps: [() => [call("renameThread", { title: "A thread that was named by its model" })]],
    answer: ([result = ""]) =>
      isRefused(result)
        ? "Then the thread keeps its name. Nothing was changed.\n"
        : `${result} This tool waits for a person: any tab could have answered, also after a restart.\n`,
  },
];

const OTHERWISE = {
  steps: [],
  answer: (_, question) =>
    `You said: “${question.replace(/\s+/g, " ").slice(0, 120)}”.\n\nI am a scripted model. I know three things: I search documents, I change ` +
    "this page's colours, and I rename this thread if you allow it. Try “What did the keeper do with the lamp?”, “Make this " +
    "page dark” or “Give this thread a better name”. For real answers choose another model: Ollama, LM Studio, or any server " +
    "that speaks OpenAI's protocol.\n",
};

/** What a client says to have an answer go on that was cut off. */
const GO_ON = /cut off/i;

/**
 * The next turn of the conversation.
 *
 * @param {{ messages: { role: string, content?: unknown, tool_calls?: unknown[] }[], tools?: { function: { name: string } }[], tool_choice?: unknown }} request
 * @returns {{ calls: { name: string, arguments: string }[] } | { text: string }}
 */
export function nextTurn({ messages, tools = [], tool_choice: choice }) {
  const asked = messages.findLastIndex(({ role, content }) => role === "user" && !GO_ON.test(textOf(content)));
  const question = asked < 0 ? "" : textOf(messages[asked].content);
  const turn = messages.slice(asked + 1);
  const results = turn.filter(({ role }) => role === "tool").map(({ content }) => textOf(content));
  const script = SCRIPTS.find(({ asks }) => asks.test(question)) ?? OTHERWISE;
  const known = new Set(tools.map((tool) => tool.function?.name));
  const done = turn.filter((message) => message.tool_calls?.length > 0).length;
  const calls = choice === "none" ? undefined : script.steps[done]?.(results, question);
  if (calls?.every(({ name }) => known.has(name))) return { calls };
  const text = script.answer(results, question);
  // What was said already, where the answer goes on after a cut.
  const said = turn
    .filter(({ role, tool_calls: made }) => role === "assistant" && !made?.length)
    .map(({ content }) => textOf(content))
    .join("");
  return { text: text.startsWith(said) ? text.slice(said.length) : text };
}

async function bodyOf(request) {
  let body = "";
  for await (const chunk of request.setEncoding("utf8")) {
    body += chunk;
    if (body.length > MAX_BODY) throw Object.assign(new Error("The request is too large"), { status: 413 });
  }
  try {
    return JSON.parse(body);
  } catch {
    throw Object.assign(new Error("The body is not JSON"), { status: 400 });
  }
}

function send(response, status, body) {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify(body));
}

/** Answers a request below `/v1`. Works as middleware of Vite's server too. */
export async function respond(request, response) {
  const { origin } = request.headers;
  // Pages of this computer, and nobody else's.
  if (origin !== undefined && !LOOPBACK.test(origin))
    return send(response, 403, { error: { message: "Foreign origin" } });
  if (origin !== undefined) {
    response.setHeader("access-control-allow-origin", origin);
    response.setHeader("access-control-allow-headers", "authorization, content-type, user-agent");
    response.setHeader("vary", "origin");
  }
  // Alone it stands below /v1; where it is mounted there, that is gone from the URL.
  const path = request.url.split("?")[0].replace(/^\/v1(?=\/)/, "");
  if (request.method === "OPTIONS") return response.writeHead(204).end();
  if (request.method === "GET" && path === "/models") {
    return send(response, 200, { object: "list", data: [{ id: MODEL, object: "model", owned_by: "demo" }] });
  }
  if (request.method !== "POST" || path !== "/chat/completions") {
    return send(response, 404, { error: { message: "Not found" } });
  }
  try {
    const asked = await bodyOf(request);
    if (!Array.isArray(asked.messages)) return send(response, 400, { error: { message: "messages is no list" } });
    if (asked.model !== MODEL)
      return send(response, 404, { error: { message: `The model “${asked.model}” is not here` } });
    await stream(response, nextTurn(asked), asked.messages.length);
  } catch (error) {
    if (!response.headersSent) send(response, error.status ?? 500, { error: { message: error.message } });
  }
}

async function stream(response, turn, place) {
  let isGone = false;
  response.on("close", () => (isGone = true));
  response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-store" });
  const tell = async (delta, finish = null, usage) => {
    if (isGone) return;
    const choices = [{ index: 0, delta, finish_reason: finish }];
    const event = { id: `answer-${place}`, object: "chat.completion.chunk", created: 0, model: MODEL, choices, usage };
    response.write(`data: ${JSON.stringify(event)}\n\n`);
    await new Promise((resolve) => setTimeout(resolve, PACE_MS));
  };
  await tell({ role: "assistant" });
  if ("calls" in turn) {
    for (const [index, made] of turn.calls.entries()) {
      // Unique in its conversation, and the same each time that it is asked.
      const id = `call_${place}_${index}`;
      await tell({ tool_calls: [{ index, id, type: "function", function: { name: made.name, arguments: "" } }] });
      for (const piece of made.arguments.match(/.{1,12}/gs) ?? []) {
        await tell({ tool_calls: [{ index, function: { arguments: piece } }] });
      }
    }
  } else {
    for (const content of turn.text.match(/\s*\S+\s*/g) ?? []) if (!isGone) await tell({ content });
  }
  await tell({}, "calls" in turn ? "tool_calls" : "stop", { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 });
  response.end("data: [DONE]\n\n");
}

/** Runs it alone, on loopback only. @returns {Promise<import("node:http").Server>} */
export function listen(port = 11_435) {
  const server = createServer((request, response) => void respond(request, response));
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, "127.0.0.1", () => resolve(server));
  });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const server = await listen(Number(process.argv[2] ?? 11_435));
  console.log(`A scripted model: http://127.0.0.1:${server.address().port}/v1 (model “${MODEL}”). Ctrl-C ends it.`);
}
