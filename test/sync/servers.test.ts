import { type ChildProcess, spawn } from "node:child_process";
import { rm } from "node:fs/promises";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { filter, firstValueFrom } from "rxjs";
import { build } from "vite";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { connectRuntime, type RuntimeConnection } from "../../src/client/connect-runtime.js";
import { serveRuntime } from "../../src/worker/serve-runtime.js";
import { startNats, type NatsServers } from "../setup/nats.mjs";
import { freshDb } from "../unit/runner/kit.js";
import { eventually, freshName, openSpace } from "./kit.js";

/*
 * Hosts on servers, in processes of their own that are killed, over real NATS servers.
 */

// Inside the project: what it imports is found from there.
const OUT = fileURLToPath(new URL("../../node_modules/.cache/sync-host", import.meta.url));
let nats: NatsServers;

beforeAll(async () => {
  const ssr = fileURLToPath(new URL("./host.ts", import.meta.url));
  await build({ configFile: false, logLevel: "silent", build: { ssr, outDir: OUT, emptyOutDir: true } });
  nats = await startNats();
});
afterAll(async () => {
  await nats?.stop();
  await rm(OUT, { recursive: true, force: true });
});

interface HostProcess {
  readonly name: string;
  readonly child: ChildProcess;
  readonly executed: string[];
}

/** Resolves when it is in step. */
async function hostProcess(
  space: string,
  name: string,
  work: { count: number; everyMs: number },
): Promise<HostProcess> {
  const settings = JSON.stringify({ name, servers: nats.urls, space, ...work });
  const env = { ...process.env, HOST: settings };
  const child = spawn(process.execPath, [`${OUT}/host.js`], { env, stdio: ["ignore", "pipe", "inherit"] });
  onTestFinished(() => void child.kill("SIGKILL"));
  const executed: string[] = [];
  await new Promise<void>((resolve, reject) => {
    child.once("exit", (code) => reject(new Error(`${name} ended with ${code}`)));
    createInterface({ input: child.stdout! }).on("line", (line) => {
      if (line === "ready") resolve();
      else executed.push(line.replace("executes ", ""));
    });
  });
  return { name, child, executed };
}

function device(space: string, name: string): RuntimeConnection {
  const sync = { space: openSpace(nats, { space }), device: name };
  const host = serveRuntime({
    dbName: freshDb(),
    agents: {},
    sync,
    agentPolicies: { counter: { placement: "server" } },
  });
  const runtime = connectRuntime({ hosts: { page: async () => host.connect() } });
  onTestFinished(async () => {
    await runtime.close();
    await host.close();
  });
  return runtime;
}

const seesServers = (runtime: RuntimeConnection, count: number) =>
  firstValueFrom(
    runtime.status$.pipe(
      filter(
        (it) => "sync" in it && it.sync?.devices.filter(({ agents }) => agents?.includes("counter")).length === count,
      ),
    ),
  );

const ask = (runtime: RuntimeConnection, threadId: string, runId: string) => {
  const agent = runtime.agent("counter", { threadId });
  agent.addMessage({ id: `${runId}-u`, role: "user", content: "count" });
  return agent.runAgent({ runId });
};

const numbers = (count: number): string => Array.from({ length: count }, (_, n) => `${n} `).join("");

test("a host that is killed in the middle of a run: another one goes on with it, once", async () => {
  const space = freshName();
  const work = { count: 40, everyMs: 150 };
  const hosts = [await hostProcess(space, "S1", work), await hostProcess(space, "S2", work)];
  const [phone, laptop] = [device(space, "Phone"), device(space, "Laptop")];
  await seesServers(phone, 2);
  ask(phone, "t", "r1").catch(() => undefined);
  // Something of it is shown on the other device.
  await eventually(async () => {
    const { messages } = await laptop.threads.messages("t");
    expect(messages.at(-1)?.content).toContain("0 1 2 ");
  });
  const first = hosts.find(({ executed }) => executed.length > 0)!;
  first.child.kill("SIGKILL");
  for (const runtime of [phone, laptop]) {
    await eventually(async () => {
      expect(await runtime.runner().getRun("r1~2", { threadId: "t" })).toMatchObject({ status: "finished" });
    });
    expect(await runtime.runner().getRun("r1", { threadId: "t" })).toMatchObject({ status: "broken" });
    const { messages } = await runtime.threads.messages("t");
    expect(messages.at(-1)?.content).toBe(numbers(40));
  }
  expect(hosts.flatMap(({ executed }) => executed).toSorted()).toEqual(["r1", "r1~2"]);
  // The thread goes on with the host that is left.
  await ask(laptop, "t", "r2");
  await eventually(async () => {
    expect(await phone.runner().getRun("r2", { threadId: "t" })).toMatchObject({ status: "finished" });
  });
});

test("hosts share the work: each run is executed once, while another one comes; one that begins anew has everything", async () => {
  const space = freshName();
  const work = { count: 5, everyMs: 5 };
  const hosts = [await hostProcess(space, "S1", work), await hostProcess(space, "S2", work)];
  const devices = [device(space, "Phone"), device(space, "Laptop")];
  for (const runtime of devices) await seesServers(runtime, 2);
  const ended: string[] = [];
  const asking = devices.map(async (runtime, n) => {
    for (let round = 0; round < 12; round++) {
      const runId = `${n}-${round}`;
      await ask(runtime, `t${n}-${round % 3}`, runId);
      ended.push(runId);
    }
  });
  await eventually(() => expect(ended.length).toBeGreaterThan(6));
  hosts.push(await hostProcess(space, "S3", work));
  await Promise.all(asking);
  const executed = hosts.flatMap((host) => host.executed);
  expect(executed.toSorted()).toEqual(ended.toSorted());
  // A host that begins anew has everything, and goes on.
  for (const { child } of hosts) child.kill("SIGTERM");
  const last = await hostProcess(space, "S4", work);
  await seesServers(devices[0]!, 1);
  await ask(devices[0]!, "t0-0", "last");
  expect(last.executed).toEqual(["last"]);
  const { messages } = await devices[0]!.threads.messages("t0-0");
  expect(messages).toHaveLength(10);
});
