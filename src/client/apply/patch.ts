import { equalJson } from "../../run/json.js";

type Container = Record<string | number, unknown>;

interface Operation {
  readonly op: string;
  readonly path: string;
  readonly from?: string;
  readonly value?: unknown;
}

class Refused extends Error {}

function refuse(): never {
  throw new Refused();
}

function isContainer(value: unknown): value is Container {
  return typeof value === "object" && value !== null;
}

function holdsUndefined(value: unknown): boolean {
  if (!isContainer(value)) return value === undefined;
  return Object.values(value).some(holdsUndefined);
}

/** Refuses what is no operation of RFC 6902. */
function check({ op, path, from, value }: Operation): void {
  if (typeof path !== "string" || (path !== "" && !path.startsWith("/"))) refuse();
  if ((op === "move" || op === "copy") && typeof from !== "string") refuse();
  if ((op === "add" || op === "replace" || op === "test") && holdsUndefined(value)) refuse();
}

interface Place {
  readonly parent: Container;
  /** The value that stands there. */
  readonly found: unknown;
  /** As the parent is indexed with it. */
  readonly key: string | number;
}

/** A document of which only what is written to is copied. */
class Draft {
  /** Containers that were copied here, so that nobody else has them. */
  readonly #own = new Set<unknown>();

  constructor(public root: unknown) {}

  apply(operation: Operation): void {
    check(operation);
    const { op, path, from, value } = operation;
    switch (op) {
      case "add":
        return this.#add(path, value, true);
      case "replace": {
        if (path === "") return void (this.root = value);
        const { parent, key } = this.#existing(path);
        parent[key] = value;
        return;
      }
      case "remove":
        if (path === "") return void (this.root = null);
        return this.#remove(path);
      case "test": {
        const place = path === "" ? undefined : this.#locate(path);
        const found = place === undefined ? this.root : place.parent[place.key];
        return equalJson(found, value) ? undefined : refuse();
      }
      case "copy":
        // Written to later in this patch, it would change in both places.
        return this.#add(path, structuredClone(this.#valueAt(from!)), false);
      case "move": {
        const moved = this.#valueAt(from!);
        if (path === "") return void (this.root = moved);
        if (from === "") refuse();
        this.#locate(path);
        this.#remove(from!);
        return this.#add(path, moved, false);
      }
      default:
        refuse();
    }
  }

  /** Where a pointer that is not the root leads; what is on the way there may be written to. */
  #locate(path: string): Place {
    const keys = path.split("/").map((key) => key.replace(/~1/g, "/").replace(/~0/g, "~"));
    let parent = (this.root = this.#writable(this.root));
    for (let t = 1; ; t++) {
      const raw = keys[t] ?? refuse();
      if (raw === "__proto__" || (raw === "prototype" && keys[t - 1] === "constructor")) refuse();
      if (Array.isArray(parent) && raw !== "-" && !/^\d*$/.test(raw)) refuse();
      if (t === keys.length - 1) {
        const key = !Array.isArray(parent) ? raw : raw === "-" ? parent.length : ~~raw;
        return { parent, found: parent[raw], key };
      }
      parent = parent[raw] = this.#writable(parent[raw]);
    }
  }

  #existing(path: string): Place {
    const place = this.#locate(path);
    return place.found === undefined ? refuse() : place;
  }

  #valueAt(path: string): unknown {
    return path === "" ? this.root : this.#existing(path).found;
  }

  #add(path: string, value: unknown, bounded: boolean): void {
    if (path === "") return void (this.root = value);
    const { parent, key } = this.#locate(path);
    if (!Array.isArray(parent)) parent[key] = value;
    else if (bounded && Number(key) > parent.length) refuse();
    else parent.splice(Number(key), 0, value);
  }

  #remove(path: string): void {
    const { parent, key } = this.#existing(path);
    if (Array.isArray(parent)) parent.splice(Number(key), 1);
    else delete parent[key];
  }

  #writable(value: unknown): Container {
    if (!isContainer(value)) refuse();
    if (this.#own.has(value)) return value;
    const copy: unknown = Array.isArray(value) ? [...value] : { ...value };
    this.#own.add(copy);
    return copy as Container; // of a container
  }
}

/**
 * Applies a JSON patch, all of it or nothing of it, with the meaning that PatchedDocument of src/run gives it. The
 * document stays as it is: what comes out shares with it, and with the values of the patch, all that the patch does not
 * write to.
 *
 * @returns `undefined` where the patch does not apply
 */
export function patched(document: unknown, patch: unknown): { readonly document: unknown } | undefined {
  const draft = new Draft(document);
  try {
    if (!Array.isArray(patch)) refuse();
    for (const operation of patch) draft.apply(operation as Operation); // checked there
    return { document: draft.root };
  } catch {
    return undefined;
  }
}
