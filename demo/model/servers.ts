import { BROWSER, type ModelChoice, scripted } from "./choice.js";

/** A server of models that people run on their own computer. */
export interface KnownServer {
  readonly name: string;
  readonly address: string;
  /** What to do where it does not answer. */
  readonly start: string;
  /** What to do where it answers, but keeps the answer from this page. */
  readonly allow: string;
}

export const servers = (): readonly KnownServer[] => [
  {
    name: "Scripted model",
    address: scripted().address,
    start: "It comes with “npm start”; alone it is “node demo/servers/model.mjs”.",
    allow: "It answers pages of this computer only.",
  },
  {
    name: "Ollama",
    address: "http://localhost:11434/v1",
    start: "Start it with “ollama serve”.",
    allow: `Set OLLAMA_ORIGINS=${location.origin} and start Ollama again.`,
  },
  {
    name: "LM Studio",
    address: "http://localhost:1234/v1",
    start: "Start its server in LM Studio, under Developer.",
    allow: "In LM Studio, under Developer, Server settings, turn on CORS.",
  },
];

/** How a server answers. */
export type Found =
  | { readonly is: "looking" }
  | { readonly is: "found"; readonly models: readonly string[] }
  /** It wants a key, or fails. */
  | { readonly is: "refused"; readonly status: number }
  /** It answers, but not to this page (CORS). */
  | { readonly is: "blocked" }
  | { readonly is: "absent" };

const TIMEOUT_MS = 2_500;

/** Asks a server for its models. Never rejects. */
export async function look(address: string, key = ""): Promise<Found> {
  const url = `${address.replace(/\/+$/, "")}/models`;
  const headers: HeadersInit = key === "" ? {} : { authorization: `Bearer ${key}` };
  try {
    const response = await fetch(url, { headers, signal: AbortSignal.timeout(TIMEOUT_MS), credentials: "omit" });
    if (!response.ok) return response.status === 404 ? { is: "absent" } : { is: "refused", status: response.status };
    return foundIn(await response.json().catch(() => undefined));
  } catch {
    // The reason is told to no script. An answer that nobody may read tells that somebody is there.
    const signal = AbortSignal.timeout(TIMEOUT_MS);
    const isThere = await fetch(url, { mode: "no-cors", signal, credentials: "omit" }).then(
      () => true,
      () => false,
    );
    return { is: isThere ? "blocked" : "absent" };
  }
}

function foundIn(body: unknown): Found {
  const list: unknown = typeof body === "object" && body !== null ? Reflect.get(body, "data") : undefined;
  if (!Array.isArray(list)) return { is: "absent" };
  const ids = list.map((it: unknown) =>
    typeof it === "object" && it !== null ? (Reflect.get(it, "id") as unknown) : it,
  );
  return { is: "found", models: ids.filter((id) => typeof id === "string").slice(0, 200) };
}

/** How a choice is called on the page. */
export function labelOf({ address, name }: ModelChoice): string {
  if (address === BROWSER) return "This browser’s own model";
  const known = servers().find((server) => server.address === address)?.name;
  if (known === "Scripted model") return known;
  const where = known ?? URL.parse(address)?.host ?? address;
  return name === "" ? where : `${name} · ${where}`;
}
