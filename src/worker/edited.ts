/**
 * A development server serves an edited worker under its old URL, and the old SharedWorker lives as long as any tab. So
 * under Vite's dev server, which marks worker files by a query, a host compares its own file at each new tab with the
 * file that it started from. An edited import changes that file too: Vite stamps imports with the time of the edit.
 */
const isDevWorker = (): boolean =>
  typeof location === "object" && new URLSearchParams(location.search).has("worker_file");

const fetchSelf = async (): Promise<string | undefined> => {
  const response = await fetch(location.href, { cache: "no-store" }).catch(() => undefined);
  return response?.ok === true ? response.text() : undefined;
};

const atStart = isDevWorker() ? fetchSelf() : undefined;

/** Whether this worker's files were edited since it started. Always false without a development server. */
export async function editedSince(): Promise<boolean> {
  if (atStart === undefined) return false;
  const [started, now] = await Promise.all([atStart, fetchSelf()]);
  return started !== undefined && now !== undefined && started !== now;
}
