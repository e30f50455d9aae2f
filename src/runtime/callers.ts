import type { Clock } from "../platform/clock.js";

type Headers = Readonly<Record<string, string>>;

/** The headers of each connected tab's last call: what starts without a caller is given those of the newest. Never stored. */
export class Callers {
  /** By a signal that aborts when the tab is gone; the newest caller is last. */
  private readonly headers = new Map<AbortSignal, Headers>();
  private readonly heard = new AbortController();

  note(tab: AbortSignal, headers: Headers): void {
    if (tab.aborted) return;
    if (!this.headers.delete(tab)) tab.addEventListener("abort", () => this.headers.delete(tab), { once: true });
    this.headers.set(tab, headers);
    this.heard.abort();
  }

  /** Those of the newest caller; none where no tab is connected, or has called within `ms` of a host's first run. */
  async newest(clock: Clock, ms: number): Promise<Headers> {
    if (!this.heard.signal.aborted) await clock.after(ms, this.heard.signal);
    return [...this.headers.values()].at(-1) ?? {};
  }
}
