// Ends process trees by pid. Browsers start processes in groups of their own, so a group is not enough.
import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";

/** Pairs of pid and parent pid of everything that runs. */
function processTable() {
  if (process.platform === "linux") {
    return readdirSync("/proc")
      .filter((name) => /^\d+$/.test(name))
      .flatMap((name) => {
        try {
          // "pid (name) state ppid …"; the name may hold spaces and brackets.
          const stat = readFileSync(`/proc/${name}/stat`, "utf8");
          const [state, ppid] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
          return state === "Z" ? [] : [[Number(name), Number(ppid)]];
        } catch {
          return [];
        }
      });
  }
  const { stdout = "" } = spawnSync("ps", ["-A", "-o", "pid=,ppid="], { encoding: "utf8" });
  return stdout
    .trim()
    .split("\n")
    .map((line) => line.trim().split(/\s+/).map(Number));
}

/** The pid and those of all processes below it, children before parents. */
export function treeOf(pid) {
  const table = processTable();
  const collect = (parent) => [
    ...table.filter(([, ppid]) => ppid === parent).flatMap(([child]) => collect(child)),
    parent,
  ];
  return collect(pid);
}

export function isAlive(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error.code === "EPERM";
  }
}

/** Signals each of the processes that is still there. */
export function signal(pids, name) {
  for (const pid of pids) {
    try {
      process.kill(pid, name);
    } catch {
      // It ended before.
    }
  }
}

/** Ends a process and everything below it, at once. */
export function killTree(pid) {
  if (process.platform === "win32") {
    spawnSync("taskkill", ["/T", "/F", "/PID", String(pid)], { stdio: "ignore" });
    return;
  }
  // Stopped first, so that nothing is started behind our back.
  signal([pid], "SIGSTOP");
  signal(treeOf(pid), "SIGKILL");
}
