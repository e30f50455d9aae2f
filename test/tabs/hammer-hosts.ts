import { LabTabs } from "./driver/scripted.js";
import { workerScript } from "./driver/test-pages.js";

/** What a host is made of: `source` is what the page loads by itself, `dedicated` a worker of the tab, else a script. */
export type MadeOf = "source" | "dedicated" | { readonly script: string };

/** Tabs whose hosts are of several kinds and share one fresh database. */
export class HostTabs extends LabTabs {
  /** @param hosts what the host of this name is made of; `source` where it is not named */
  constructor(
    given: ConstructorParameters<typeof LabTabs>[0],
    private readonly hosts: Readonly<Record<string, MadeOf>>,
    private readonly origin?: string,
  ) {
    super(given);
  }

  override url(host = "one"): string {
    const url = new URL(super.url(host).replace("scripted.html", "hosts.html"));
    const madeOf = this.hosts[host] ?? "source";
    if (madeOf === "dedicated") url.searchParams.set("dedicated", "");
    else if (madeOf !== "source") url.searchParams.set("script", madeOf.script);
    return this.origin === undefined ? url.href : new URL(`${url.pathname}${url.search}`, this.origin).href;
  }

  /** The database that they share. */
  get dbName(): string {
    return this.workerName("").slice(0, -1);
  }
}

/** A worker of test/tabs/pages, for {@link HostTabs}. */
export const workerSource = (name: string): MadeOf => ({ script: workerScript(name) });
