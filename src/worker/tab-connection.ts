import { expose } from "comlink";
import { systemClock } from "../platform/clock.js";
import type { Locks } from "../platform/locks.js";
import { tabLifeLockName } from "../platform/names.js";
import type { LocalAgentRunner } from "../runner/local-agent-runner.js";
import { toLiveRunInfo } from "../runner/attach.js";
import { RunnerError } from "../run/errors.js";
import { checkAttach, checkRun, checkStop, checkThread, checkThreadQuery } from "../wire/checks.js";
import { guardedEndpoint } from "../wire/endpoint.js";
import { reply } from "../wire/errors.js";
import { sendFrames } from "../wire/frames.js";
import { HOST_METHODS, type HostApi } from "../wire/host-api.js";
import type { TabHello, WatchFrame } from "../wire/shapes.js";
import type { AgentRegistry } from "./agents.js";

export interface TabConnectionParts {
  readonly runner: LocalAgentRunner;
  readonly agents: AgentRegistry;
  readonly locks: Locks;
  /** Called with the port of a tab that wants to know of threads and tabs. Returns how to end it. */
  readonly watch: (send: (frame: WatchFrame) => void) => () => void;
}

/** How long a link waits for its tab's name, in ms. */
const UNNAMED_MS = 60_000;

/** Where a tab's messages come from: a SharedWorker's port, the scope of a dedicated worker, one end of a channel. */
export interface RawPort {
  postMessage(message: unknown, transfer: Transferable[]): void;
  addEventListener(type: "message", listener: (event: MessageEvent<unknown>) => void): void;
  removeEventListener(type: "message", listener: (event: MessageEvent<unknown>) => void): void;
}

/**
 * One tab's link to this host. Ends when the tab's life lock falls, which is the only sign of a closed tab.
 * No run ends with it.
 *
 * @param onTab called once the tab has named itself, and so counts
 * @returns the port for the tab's `hello`, and how to end the link
 */
export function connectTab(
  raw: RawPort,
  parts: TabConnectionParts,
  onTab: () => void,
  onGone: () => void,
): { readonly port: MessagePort; readonly close: () => void } {
  const { runner, agents, locks } = parts;
  const ended = new AbortController();
  const { signal } = ended;

  const api: HostApi = {
    run: (request, port) =>
      reply(async () => {
        checkRun(request);
        checkPort(port);
        const { threadId, agentId, input, partial } = request;
        const agent = await agents.clone(agentId);
        const run = runner.start({ threadId, agentId, agent, input: { ...input, threadId }, partial });
        const ref = await run.started;
        void sendFrames(port, (until) => runner.runFrames(run, until), signal);
        return toLiveRunInfo(ref);
      }).then((answer) => {
        // Nothing comes on the port of a run that was refused.
        if ("error" in answer && port instanceof MessagePort) port.close();
        return answer;
      }),
    attach: (request, port) =>
      reply(() => {
        checkAttach(request);
        checkPort(port);
        void sendFrames(port, (until) => runner.attach(request, until), signal);
        return null;
      }),
    stop: (request) => reply(() => runner.stop(checkStop(request))),
    isRunning: (request) => reply(() => runner.isRunning(checkThread(request))),
    listThreads: (query) => reply(() => runner.listThreads(checkThreadQuery(query))),
    watch: (port) =>
      reply(() => {
        checkPort(port);
        const end = parts.watch((frame) => port.postMessage(frame));
        signal.addEventListener(
          "abort",
          () => {
            end();
            port.close();
          },
          { once: true },
        );
        return null;
      }),
  };

  const { port1, port2 } = new MessageChannel();
  expose(api, guardedEndpoint(port1, HOST_METHODS));

  let named = false;
  const listen = ({ data }: MessageEvent<unknown>): void => {
    if (!isTabHello(data)) return;
    raw.removeEventListener("message", listen);
    named = true;
    onTab();
    // The tab holds the lock since before it named it, so this waits for its end.
    void locks.whenFree(tabLifeLockName(data.tabId), signal).then(close);
  };
  raw.addEventListener("message", listen);
  // A tab that asked again, or went away before it heard the hello, never answers it.
  void systemClock.after(UNNAMED_MS, signal).then(() => {
    if (!named) close();
  });

  function close(): void {
    if (signal.aborted) return;
    ended.abort();
    raw.removeEventListener("message", listen);
    port1.close();
    onGone();
  }
  return { port: port2, close };
}

function checkPort(port: unknown): asserts port is MessagePort {
  if (!(port instanceof MessagePort)) {
    throw new RunnerError("invalid-input", { field: "port" }, { message: "A MessagePort must be handed over" });
  }
}

function isTabHello(data: unknown): data is TabHello {
  const hello = data as Partial<TabHello> | null;
  return hello?.type === "tab" && typeof hello.tabId === "string" && hello.tabId !== "";
}
