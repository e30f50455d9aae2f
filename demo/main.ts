import "./policy.js";
import { connectRuntime } from "ag-ui-local-runtime/client";
import { workOffline } from "./offline.js";
import { App } from "./ui/app.js";
import { listenToPage } from "./ui/page-events.js";
import { Screen } from "./ui/screen.js";

/** Tried in this order. All tabs must name the shared worker with the same options, or the browser refuses them. */
const connect = (headers: () => Record<string, string>) =>
  connectRuntime({
    headers,
    hosts: {
      shared: (name) =>
        new SharedWorker(new URL("./agents.worker.ts", import.meta.url), {
          type: "module",
          name,
          // Chromium: a run outlives the reload of the only tab. Others ignore it.
          extendedLifetime: true,
        }),
      dedicated: () => new Worker(new URL("./agents.worker.ts", import.meta.url), { type: "module" }),
    },
    // The development server gives the worker file by file: on a busy machine that takes a while.
    startTimeoutMs: 30_000,
  });

const root = document.querySelector<HTMLElement>("#app");
if (!root) throw new Error("index.html has no #app");

const app = new App(connect);
new Screen(app, root).start();
listenToPage(app);
app.start();
workOffline();
