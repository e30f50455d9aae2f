import jsonpatch, { type Operation } from "fast-json-patch";
import { cloneJson } from "./json.js";

type Container = Record<string | number, unknown>;

/** Says why a patch does not apply. Never leaves this file: fast-json-patch's own errors print the whole document. */
class PatchRefused extends Error {}

/** Takes back one change. */
type Undo = () => void;

interface Place {
  readonly parent: Container;
  /** As the pointer spells it. */
  readonly raw: string;
  /** As the parent is indexed with it. */
  readonly key: string | number;
}

function isIndex(key: string): boolean {
  return /^\d*$/.test(key);
}

function child(parent: Container, raw: string): unknown {
  return parent[raw];
}

/** Where a pointer leads. `path` must not be the root. Refuses prototype keys and what cannot be reached. */
function locate(root: unknown, path: string): Place {
  const keys = path.split("/");
  let parent: unknown = root;
  for (let t = 1; ; t++) {
    if (typeof parent !== "object" || parent === null) throw new PatchRefused("unreachable path");
    const container = parent as Container;
    const raw = keys[t]!.includes("~") ? keys[t]!.replace(/~1/g, "/").replace(/~0/g, "~") : keys[t]!;
    if (raw === "__proto__" || (raw === "prototype" && keys[t - 1] === "constructor")) {
      throw new PatchRefused("prototype key");
    }
    if (Array.isArray(parent) && raw !== "-" && !isIndex(raw)) throw new PatchRefused("not an index");
    if (t === keys.length - 1) {
      if (!Array.isArray(parent)) return { parent: container, raw, key: raw };
      return { parent: container, raw, key: raw === "-" ? parent.length : ~~raw };
    }
    parent = child(container, raw);
  }
}

function existing(place: Place): unknown {
  const value = child(place.parent, place.raw);
  if (value === undefined) throw new PatchRefused("no value at the path");
  return value;
}

/** Where a splice at `key` takes place. */
function spliceIndex(list: unknown[], key: string | number): number {
  const index = Number(key);
  return index < 0 ? Math.max(0, list.length + index) : Math.min(index, list.length);
}

/** What takes back an `add` at a place where nothing was changed yet. */
function undoAdd({ parent, key }: Place): Undo {
  if (Array.isArray(parent)) {
    const index = spliceIndex(parent, key);
    return () => parent.splice(index, 1);
  }
  return undoSet(parent, key);
}

function undoSet(parent: Container, key: string | number): Undo {
  if (!Object.hasOwn(parent, key)) return () => delete parent[key];
  const old = parent[key];
  return () => (parent[key] = old);
}

function undoRemove({ parent, key }: Place): Undo {
  if (Array.isArray(parent)) {
    const index = spliceIndex(parent, key);
    const old: unknown = parent[index];
    return () => parent.splice(index, 0, old);
  }
  return undoSet(parent, key);
}

/**
 * A JSON document that patches change in place. The document must belong to the caller alone; values of patches are
 * copied when they go in.
 */
export class PatchedDocument {
  constructor(public root: unknown) {}

  /**
   * Applies a patch, all of it or nothing of it, with the meaning that fast-json-patch gives it when it validates.
   * What is taken back may leave the fields of an object in another order.
   *
   * @returns whether it was applied
   */
  apply(patch: readonly Operation[]): boolean {
    const undo: Undo[] = [];
    try {
      if (!Array.isArray(patch)) throw new PatchRefused("not a list");
      for (const operation of patch as readonly Operation[]) {
        jsonpatch.validator(operation, 0);
        this.#step(operation, undo);
      }
      return true;
    } catch {
      for (const back of undo.toReversed()) back();
      return false;
    }
  }

  #step(operation: Operation, undo: Undo[]): void {
    const { op, path } = operation;
    switch (op) {
      case "add":
        return this.#add(path, cloneJson(operation.value as unknown), undo, true);
      case "replace": {
        if (path === "") return this.#setRoot(cloneJson(operation.value as unknown), undo);
        const place = locate(this.root, path);
        existing(place);
        const value = cloneJson(operation.value as unknown);
        undo.push(undoSet(place.parent, place.key));
        jsonpatch.applyOperation(this.root, { op, path, value });
        return;
      }
      case "remove": {
        if (path === "") return this.#setRoot(null, undo);
        existing(locate(this.root, path));
        return this.#remove(path, undo);
      }
      case "test": {
        const { value } = operation as { value: unknown };
        const place = path === "" ? undefined : locate(this.root, path);
        const found = place === undefined ? this.root : place.parent[place.key];
        if (!jsonpatch._areEquals(found, value)) throw new PatchRefused("test failed");
        return;
      }
      case "copy":
        return this.#add(path, cloneJson(this.#valueAt(operation.from)), undo, false);
      case "move": {
        const { from } = operation;
        const value = this.#valueAt(from);
        if (path === "") return this.#setRoot(value, undo);
        if (from === "") throw new PatchRefused("the root moved into itself");
        locate(this.root, path);
        this.#remove(from, undo);
        return this.#add(path, value, undo, false);
      }
      default:
        throw new PatchRefused("unknown operation");
    }
  }

  #valueAt(path: string): unknown {
    return path === "" ? this.root : existing(locate(this.root, path));
  }

  #add(path: string, value: unknown, undo: Undo[], bounded: boolean): void {
    if (path === "") return this.#setRoot(value, undo);
    const place = locate(this.root, path);
    if (bounded && Array.isArray(place.parent) && Number(place.key) > place.parent.length) {
      throw new PatchRefused("index out of bounds");
    }
    undo.push(undoAdd(place));
    jsonpatch.applyOperation(this.root, { op: "add", path, value });
  }

  #remove(path: string, undo: Undo[]): void {
    undo.push(undoRemove(locate(this.root, path)));
    jsonpatch.applyOperation(this.root, { op: "remove", path });
  }

  #setRoot(value: unknown, undo: Undo[]): void {
    const old = this.root;
    undo.push(() => (this.root = old));
    this.root = value;
  }
}
