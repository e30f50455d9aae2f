// A server for the sync of devices, for development: on this machine only, without TLS and passwords.
//   npm run sync:server -- --port 9222 --folder <where it keeps its data> --origin http://localhost:3000
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { natsConfig, obtainNats, spawnNats } from "../../test/setup/nats.mjs";

/** The demo's. NATS knows one port for each host. */
const ORIGINS = ["http://localhost:5173", "http://127.0.0.1:5173"];

const { values } = parseArgs({
  options: { port: { type: "string" }, folder: { type: "string" }, origin: { type: "string", multiple: true } },
});
const ws = Number(values.port ?? 9222);
const folder = resolve(values.folder ?? join(tmpdir(), "ag-ui-local-runtime-sync"));
// Without a password, any page that is open in a browser here could connect.
const origins = values.origin ?? ORIGINS;

const { path, missing } = obtainNats();
if (!path) {
  console.error(missing);
  process.exit(1);
}
mkdirSync(folder, { recursive: true });
const configFile = join(folder, "nats.conf");
const logFile = join(folder, "nats.log");
writeFileSync(logFile, "");
// Port -1: any free one. Browsers connect by WebSocket.
const config = `log_file: ${JSON.stringify(logFile)}`;
writeFileSync(configFile, natsConfig({ name: "sync", port: -1, ws, folder, origins, config }));
const { child, ended } = spawnNats(path, configFile);
let isStopped = false;
for (const signal of ["SIGINT", "SIGTERM"]) {
  process.once(signal, () => {
    isStopped = true;
    child.kill("SIGTERM");
  });
}
console.log(`A server for sync on port ${ws}, its data in ${folder}. Ctrl-C ends it.
Pages of these origins may connect (--origin names others): ${origins.join(", ")}

  serveRuntime({ agents, sync: { servers: "ws://127.0.0.1:${ws}", space: "dev" } });
`);
await ended;
if (!isStopped) {
  console.error(readFileSync(logFile, "utf8").slice(-2_000));
  process.exitCode = 1;
}
