// Finds nats-server, or installs it, and starts servers of it. Only node: builtins at load.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { installPackages, isProgram, which } from "./browsers.mjs";

const VARIABLE = "NATS_SERVER_PATH";
/** Debian's own place is not in everybody's PATH. */
const PLACES = ["/usr/sbin/nats-server", "/usr/local/sbin/nats-server"];
/** A server that is not ready by then never will be. */
const READY_MS = 60_000;
/** A server of a cluster that is not well again by then stays behind. */
const WELL_MS = 30_000;
/** How often a condition is looked at. */
const LOOK_MS = 25;

/** The path of nats-server, or undefined where it is not here. */
export function findNats() {
  const named = process.env[VARIABLE];
  if (named) return isProgram(named) ? named : undefined;
  return which("nats-server") ?? PLACES.find(isProgram);
}

/**
 * The path of nats-server, installed where it is missing and can be.
 * @returns `{ path }`, or `{ missing }`: a sentence that says what to install
 */
export function obtainNats() {
  const here = findNats();
  if (here) return { path: here };
  if (process.env[VARIABLE]) return { missing: `${VARIABLE} names no program (${process.env[VARIABLE]})` };
  console.log("nats-server is missing");
  const installed = installPackages(["nats-server"]) ? findNats() : undefined;
  if (installed) return { path: installed };
  return { missing: `nats-server cannot be had here: install it (https://nats.io/download), or set ${VARIABLE}` };
}

/** Below those that systems give to who connects, or listens on any: nobody is given one while its server is dead. */
const [FIRST_PORT, PORTS] = [10_000, 20_000];

/** Ports that nobody listens on. */
async function freePorts(count) {
  const servers = [];
  while (servers.length < count) {
    const server = createServer().listen(FIRST_PORT + Math.floor(Math.random() * PORTS), "127.0.0.1");
    await once(server, "listening").then(
      () => servers.push(server),
      () => undefined,
    );
  }
  const ports = servers.map((server) => server.address().port);
  for (const server of servers) await once(server.close(), "close");
  return ports;
}

/**
 * The configuration of one server: loopback only, without TLS, for tests and development.
 * @param origins the pages that may connect; undefined: all
 */
export function natsConfig({ name, port, ws, monitor, folder, cluster, origins, config = "" }) {
  return `server_name: ${name}
listen: "127.0.0.1:${port}"
${monitor ? `http: "127.0.0.1:${monitor}"` : ""}
jetstream { store_dir: ${JSON.stringify(folder)}, max_memory_store: 64MB, max_file_store: 8GB }
websocket { listen: "127.0.0.1:${ws}", no_tls: true${origins ? `, allowed_origins: ${JSON.stringify(origins)}` : ""} }
${
  cluster
    ? `cluster {
  name: tests
  listen: "127.0.0.1:${cluster.port}"
  routes: [${cluster.routes.map((route) => `"nats://127.0.0.1:${route}"`).join(", ")}]
}`
    : ""
}
${config}
`;
}

/** Servers that are not to outlive this process. */
const running = new Set();
process.once("exit", () => {
  for (const child of running) child.kill("SIGKILL");
});

/** Starts a server; the promise is of its end. */
export function spawnNats(path, configFile, stdio = "ignore") {
  const child = spawn(path, ["-c", configFile], { stdio });
  running.add(child);
  const ended = new Promise((resolve) => {
    child.once("error", resolve);
    child.once("exit", resolve);
  });
  void ended.then(() => running.delete(child));
  return { child, ended };
}

/** What a server says of itself; undefined: it does not answer. */
async function healthOf(monitor) {
  try {
    return await fetch(`http://127.0.0.1:${monitor}/healthz`);
  } catch {
    return undefined;
  }
}

/**
 * Starts one server, or a cluster of three.
 * @param config further configuration, of all: accounts, authorization, limits
 */
export async function startNats({ servers = 1, config = "" } = {}) {
  const { path, missing } = obtainNats();
  if (!path) throw new Error(missing);
  const folder = mkdtempSync(join(tmpdir(), "nats-"));
  const ports = await freePorts(servers * 4);
  const own = Array.from({ length: servers }, (_, at) => {
    const [port, ws, monitor, route] = ports.slice(at * 4, at * 4 + 4);
    return { name: `n${at}`, port, ws, monitor, route, folder: join(folder, `n${at}`) };
  });
  const routes = own.map(({ route }) => route);
  for (const server of own) {
    mkdirSync(server.folder);
    const cluster = servers > 1 ? { port: server.route, routes } : undefined;
    const log = `log_file: ${JSON.stringify(join(folder, `${server.name}.log`))}`;
    writeFileSync(join(folder, `${server.name}.conf`), natsConfig({ ...server, cluster, config: `${log}\n${config}` }));
  }

  function start(at) {
    own[at].process = spawnNats(path, join(folder, `${own[at].name}.conf`));
  }

  /** @param wellMs how long it may answer and not be well, in ms; then it resolves all the same */
  async function ready(at, wellMs = Infinity) {
    const { child } = own[at].process;
    const began = Date.now();
    for (; ; await delay(LOOK_MS)) {
      const health = await healthOf(own[at].monitor);
      const took = Date.now() - began;
      if (health?.ok) return true;
      if (health && took > wellMs) return false;
      if (child.exitCode === null && took < READY_MS) continue;
      const log = join(folder, `${own[at].name}.log`);
      throw new Error(`nats-server did not start: ${existsSync(log) ? readFileSync(log, "utf8").slice(-2_000) : path}`);
    }
  }

  async function kill(at = 0, signal = "SIGKILL") {
    const { child, ended } = own[at].process;
    child.kill(signal);
    await ended;
  }

  /** All lose their disks. */
  async function wipe() {
    await Promise.all(own.map((_, at) => kill(at)));
    for (const server of own) {
      rmSync(server.folder, { recursive: true });
      mkdirSync(server.folder);
    }
    own.forEach((_, at) => start(at));
    await Promise.all(own.map((_, at) => ready(at)));
  }

  async function stop() {
    await Promise.all(own.map((_, at) => kill(at)));
    rmSync(folder, { recursive: true, force: true });
  }

  own.forEach((_, at) => start(at));
  try {
    await Promise.all(own.map((_, at) => ready(at)));
  } catch (error) {
    await stop();
    throw error;
  }
  return {
    urls: own.map(({ port }) => `nats://127.0.0.1:${port}`),
    wsUrls: own.map(({ ws }) => `ws://127.0.0.1:${ws}`),
    folder,
    names: own.map(({ name }) => name),
    pids: () => own.map(({ process: { child } }) => child.pid),
    kill,
    wipe,
    async restart(at = 0) {
      const again = async () => {
        if (own[at].process.child.exitCode === null && own[at].process.child.signalCode === null) await kill(at);
        start(at);
        return ready(at, servers > 1 ? WELL_MS : undefined);
      };
      // In a cluster a server of 2.9 may stay behind until it is started once more, or for good: the two others go on.
      if (!(await again())) await again();
    },
    stop,
  };
}
