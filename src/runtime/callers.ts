import { Subject } from "rxjs";
import type { Clock } from "../platform/clock.js";
import { equalJson } from "../run/json.js";

type Headers = Readonly<Record<string, string>>;

/** Whether these headers have all of the names, however they are spelled, none of them empty. */
export const hasAll = (headers: Headers, names: readonly string[]): boolean =>
  names.every((name) =>
    Object.entries(headers).some(([key, value]) => key.toLowerCase() === name.toLowerCase() && value !== ""),
  );

/** The headers of each connected tab's last call: what starts without a caller is given those of the newest. Never stored. */
export class Callers {
  /** By a signal that aborts when the tab is gone; the newest caller is last. */
  private readonly headers = new Map<AbortSignal, Headers>();
  private readonly heard = new AbortController();
  /** A tab has called with other headers than before. */
  readonly changed$ = new Subject<void>();

  note(tab: AbortSignal, headers: Headers): void {
    if (tab.aborted) return;
    const before = this.headers.get(tab);
    if (!this.headers.delete(tab)) tab.addEventListener("abort", () => this.headers.delete(tab), { once: true });
    this.headers.set(tab, headers);
    this.heard.abort();
    if (!equalJson(before, headers)) this.changed$.next();
  }

  /** Those of the newest caller that has all of these names, none of them empty. */
  having(names: readonly string[]): Headers | undefined {
    return [...this.headers.values()].findLast((headers) => hasAll(headers, names));
  }

  /** Those of the newest caller; none where no tab is connected, or has called within `ms` of a host's first run. */
  async newest(clock: Clock, ms: number): Promise<Headers> {
    if (!this.heard.signal.aborted) await clock.after(ms, this.heard.signal);
    return [...this.headers.values()].at(-1) ?? {};
  }
}
