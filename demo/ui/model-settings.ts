import { headersOf, isChoice, isLocal, type ModelChoice, scripted } from "../model/choice.js";
import { type Found, labelOf, look, servers } from "../model/servers.js";
import type { Feedback } from "./feedback.js";

const STORED = "reader:model";

/** Which model answers, for all tabs of this browser; its key, for this tab alone, until it is reloaded. */
export class ModelSettings {
  choice: ModelChoice = load();
  /** What is entered in the dialog, not in use yet. */
  draft: ModelChoice & { readonly key: string } = { ...this.choice, key: "" };
  /** How servers answered, by their addresses. */
  readonly found = new Map<string, Found>();
  /** By address: a key is for the server that it was entered for. */
  readonly #keys = new Map<string, string>();

  constructor(private readonly page: Feedback) {
    addEventListener("storage", ({ key }) => {
      if (key !== STORED) return;
      this.choice = load();
      page.changed();
    });
  }

  get label(): string {
    return labelOf(this.choice);
  }

  /** The agent's id for the choice: one waits for the network, the other needs none. */
  get agentId(): string {
    return isLocal(this.choice.address) ? "model" : "model-remote";
  }

  /** What goes along with each call. */
  readonly headers = (): Record<string, string> => headersOf(this.choice, this.#keys.get(this.choice.address) ?? "");

  /** Begins the choice anew, and looks which servers are there. */
  begin(): void {
    this.draft = { ...this.choice, key: this.#keys.get(this.choice.address) ?? "" };
    this.lookAround();
  }

  lookAround(): void {
    const addresses = new Set([...servers().map(({ address }) => address), this.draft.address]);
    for (const address of addresses) void this.look(address);
  }

  /** Asks a server for its models. */
  async look(address: string): Promise<void> {
    if (!isChoice({ address, name: "" }) || !/^https?:/.test(address)) return;
    this.#set(address, { is: "looking" });
    const key = this.draft.address === address ? this.draft.key : (this.#keys.get(address) ?? "");
    const found = await look(address, key);
    this.#set(address, found);
    // Its first model, where none was named.
    if (found.is === "found" && this.draft.address === address && this.draft.name === "") {
      this.enter({ name: found.models[0] ?? "" });
    }
  }

  enter(change: Partial<ModelSettings["draft"]>): void {
    this.draft = { ...this.draft, ...change };
    this.page.changed();
  }

  /** Takes the server, with its first model. */
  pick(address: string): void {
    const found = this.found.get(address);
    const name = address === this.choice.address ? this.choice.name : (found?.is === "found" && found.models[0]) || "";
    this.enter({ address, name, key: this.#keys.get(address) ?? "" });
  }

  /** Uses what was entered. */
  use(): void {
    const { address, name, key } = this.draft;
    if (!isChoice({ address, name })) return;
    this.choice = { address, name };
    this.#keys.set(address, key);
    try {
      localStorage.setItem(STORED, JSON.stringify(this.choice));
    } catch {
      // No storage: until the next reload.
    }
    this.page.announce(`Model: ${this.label}`);
  }

  #set(address: string, found: Found): void {
    this.found.set(address, found);
    this.page.changed();
  }
}

function load(): ModelChoice {
  try {
    const stored: unknown = JSON.parse(localStorage.getItem(STORED) ?? "null");
    if (isChoice(stored)) return stored;
  } catch {
    // As nothing.
  }
  return scripted();
}
