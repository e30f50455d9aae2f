// A server for the sync of devices, for development: on this machine only, without TLS and passwords.
//   npm run sync:server -- --port 9222 --nats-port 4222 --folder <where it keeps its data> --origin http://localhost:3000
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { natsConfig, obtainNats, spawnNats } from "../../test/setup/nats.mjs";

/** The demo's. NATS knows one port for each host. */
const ORIGINS = ["http://localhost:5173", "http://127.0.0.1:5173"];

const { values } = parseArgs({
  options: {
    port: { type: "string" },
    "nats-port": { type: "string" },
    folder: { type: "string" },
    origin: { type: "string", multiple: true },
  },
});
const ws = Number(values.port ?? 9222);
const nats = Number(values["nats-port"] ?? 4222);
const folder = resolve(values.folder ?? join(tmpdir(), `ag-ui-local-runtime-sync-${ws}`));
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
// Browsers connect by WebSocket, hosts on servers by NATS's own protocol.
const config = `log_file: ${JSON.stringify(logFile)}`;
writeFileSync(configFile, natsConfig({ name: "sync", port: nats, ws, folder, origins, config }));
const { child, ended } = spawnNats(path, configFile);
let isStopped = false;
// SIGHUP: its terminal was closed. nats-server itself would only read its configuration again, and go on.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
  process.once(signal, () => {
    isStopped = true;
    child.kill("SIGTERM");
  });
}
console.log(`A server for sync on ws://127.0.0.1:${ws} and nats://127.0.0.1:${nats} (--port and --nats-port name others), its data in
${folder}. Ctrl-C ends it.
Pages of these origins may connect (--origin names others): ${origins.join(", ")}

  serveRuntime({ agents, sync: { servers: "ws://127.0.0.1:${ws}", space: "dev" } });

Hosts on servers: startHost({ agents, sync: { servers: "nats://127.0.0.1:${nats}", space: "dev" } });
`);
await ended;
if (!isStopped) {
  console.error(readFileSync(logFile, "utf8").slice(-2_000));
  process.exitCode = 1;
}
