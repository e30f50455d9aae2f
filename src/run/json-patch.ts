import { cloneJson, equalJson, isRecord } from "./json.js";
import { PATCH_BOUNDS, type PatchBounds } from "./patch-bounds.js";
import { weigh } from "./size.js";

/*
 * JSON Patch (RFC 6902) with the results of fast-json-patch 3.1.1 as `@ag-ui/client` calls it (validating): each reader
 * must rebuild the same. That includes what the RFC does not allow: an array index may be empty or have leading zeros
 * where fast-json-patch takes it.
 *
 * It differs on purpose where fast-json-patch would read or write something that is not the document's own: inherited
 * properties, an array's `length`, a pointer without its slash, operations that JavaScript objects inherit, a root that
 * moves into itself, a write to a primitive. Here such a patch is `unsafe` and changes nothing.
 */

/** A copy may not make the document larger than this, see {@link weigh}. */
export const MAX_COPIED_DOCUMENT = 4_000_000;

export type PatchResult =
  /** `copied`: size of all that its operations copied, see {@link weigh}. */
  | { readonly is: "applied"; readonly copied: number }
  /** It applies neither here nor in any AG-UI client. Nothing was changed. */
  | { readonly is: "refused" }
  /** It is refused here, but fast-json-patch may apply it: no AG-UI client may be handed it. Nothing was changed. */
  | { readonly is: "unsafe"; readonly why: string }
  /** It exceeds the bounds. Nothing was changed. */
  | { readonly is: "exceeds"; readonly bound: keyof PatchBounds; readonly most: number };

type Container = Record<string | number, unknown>;

/** Ends a patch that does not apply; never leaves this file. */
class Refused extends Error {
  constructor(readonly result: PatchResult = { is: "refused" }) {
    super();
  }
}

function refuse(): never {
  throw new Refused();
}

function unsafe(why: string): never {
  throw new Refused({ is: "unsafe", why });
}

function exceed(bound: keyof PatchBounds, most: number): never {
  throw new Refused({ is: "exceeds", bound, most });
}

const isContainer = (value: unknown): value is Container => typeof value === "object" && value !== null;

const isNothing = (value: unknown): boolean => value === null || value === undefined;

const isIndex = (key: string): boolean => /^\d*$/.test(key);

function some(value: unknown, is: (key: string, inner: unknown) => boolean): boolean {
  return isContainer(value) && Object.entries(value).some(([key, inner]) => is(key, inner) || some(inner, is));
}

/** The target of an operation. */
interface Place {
  /** Belongs to the document: it may be written to. */
  readonly parent: Container;
  /** The key as the pointer spells it. */
  readonly raw: string;
  /** The key or index in the parent. */
  readonly key: string | number;
  /** Depth of the parent in the document. */
  readonly depth: number;
}

function keysOf(pointer: string): string[] {
  const raw = pointer.split("/");
  const keys = raw.map((key) => (key.includes("~") ? key.replace(/~1/g, "/").replace(/~0/g, "~") : key));
  const isPrototype = (key: string, at: number): boolean =>
    key === "__proto__" || (key === "prototype" && raw[at - 1] === "constructor");
  if (keys.some((key, at) => at > 0 && isPrototype(key, at))) refuse();
  return keys.slice(1);
}

/** fast-json-patch reads digits as a 32-bit number. */
const indexOf = (parent: Container, raw: string): string | number =>
  !Array.isArray(parent) ? raw : raw === "-" ? parent.length : ~~raw;

/** Operations of fast-json-patch, and the inherited names that its lookup also finds. */
const KNOWN: object = { add: 0, remove: 0, replace: 0, move: 0, copy: 0, test: 0, _get: 0 };

interface Operation {
  readonly op: string;
  readonly path: string;
  readonly from: string;
  readonly value: unknown;
}

/** Refuses what is not an operation of RFC 6902. */
function checked(given: unknown): Operation {
  if (!isContainer(given) || Array.isArray(given)) refuse();
  // Its fields are checked below.
  const operation = given as unknown as Operation;
  const { op, path, from, value } = operation;
  if (typeof op !== "string" || !Object.hasOwn(KNOWN, op) || op === "_get") {
    if (String(op) in KNOWN) unsafe(`"${String(op)}" is no operation`);
    refuse();
  }
  if (typeof path !== "string" || (path !== "" && !path.startsWith("/"))) refuse();
  if (op === "move" || op === "copy") {
    if (typeof from !== "string") refuse();
    if (from !== "" && !from.startsWith("/")) unsafe("a pointer begins with a slash");
  } else if (op !== "remove" && (value === undefined || some(value, (_key, inner) => inner === undefined))) refuse();
  return operation;
}

/** Undoes one change. */
type Undo = () => void;

/**
 * A JSON document that patches change. Copy-on-write: a given root or value is never written to; a container is copied
 * before the first write to it, and the copies change in place.
 */
export class PatchedDocument {
  #root: unknown;
  readonly #own = new WeakSet<object>();
  /** Size of the document; known once something was copied in it. */
  #size: number | undefined;
  readonly #bounds: PatchBounds;

  // Of the patch that is being applied:
  #undo: Undo[] = [];
  #copied = 0;
  #moved = 0;
  /** Size of what left the document. */
  #gone: unknown[] = [];

  constructor(root: unknown, bounds = PATCH_BOUNDS) {
    this.#root = root;
    this.#bounds = bounds;
  }

  /** Live: the next patch may change it. */
  get root(): unknown {
    return this.#root;
  }

  /**
   * Applies a patch completely or not at all. An undone patch may leave the fields of an object in another order.
   *
   * @param isObject the document must stay an object: a patch that makes it something else is `unsafe`
   */
  apply(patch: unknown, isObject = false): PatchResult {
    const size = this.#size;
    this.#undo = [];
    this.#gone = [];
    this.#copied = this.#moved = 0;
    try {
      if (!Array.isArray(patch)) refuse();
      if (patch.length > this.#bounds.operations) exceed("operations", this.#bounds.operations);
      for (const operation of patch) this.#step(checked(operation));
      if (isObject && !isRecord(this.#root)) unsafe("the whole must stay an object");
      if (this.#size !== undefined) for (const value of this.#gone) this.#grow(-weigh(value, {}).size);
      return { is: "applied", copied: this.#copied };
    } catch (error) {
      for (const back of this.#undo.toReversed()) back();
      this.#size = size;
      // A stack overflow: deeper than anything that is recorded today.
      return error instanceof Refused ? error.result : { is: "refused" };
    } finally {
      this.#undo = [];
      this.#gone = [];
    }
  }

  #step({ op, path, from, value }: Operation): void {
    switch (op) {
      case "add":
        if (path === "") return this.#setRoot(value);
        return this.#add(this.#place(path, "exact"), value);
      case "replace": {
        if (path === "") return this.#setRoot(value);
        const place = this.#existing(path);
        this.#grow(this.#fitting(value, place));
        return this.#put(place, value);
      }
      case "remove": {
        if (path === "") return this.#setRoot(null);
        const place = this.#existing(path);
        this.#gone.push(place.parent[place.key]);
        return this.#take(place);
      }
      case "test":
        // fast-json-patch calls the value's own method.
        if (!equalJson(this.#find(path, "test"), value) || some(value, (key) => key === "hasOwnProperty")) refuse();
        return;
      case "copy":
        return this.#copy(from, path);
      default:
        return this.#move(from, path);
    }
  }

  #move(from: string, path: string): void {
    if (path === "") {
      const root = this.#rootFrom(from);
      this.#look(root, 0);
      return this.#setRoot(root);
    }
    const { depth } = this.#place(path, "loose");
    const moved = this.#find(from, "from");
    if (from === "") unsafe("the root moves into itself");
    const source = this.#place(from, "exact");
    // If it is no deeper than before, it fits.
    if (depth > source.depth) this.#look(moved, depth);
    this.#take(source);
    this.#insert(this.#place(path, "again"), moved);
  }

  /**
   * Resolves a pointer other than the root; copies the containers on the way, so that they may be written to.
   *
   * @param how `exact`: each step is there as it is spelt; `loose`: an index is a number however it is spelt; `again`:
   *   the same after a change, where fast-json-patch does not validate any more
   */
  #place(path: string, how: "exact" | "loose" | "again"): Place {
    const keys = keysOf(path);
    const isAgain = how === "again";
    let parent = (this.#root = this.#writable(this.#root, true));
    for (let depth = 1; ; depth++) {
      const raw = keys[depth - 1]!;
      if (Array.isArray(parent) && raw !== "-" && !isIndex(raw)) {
        if (isAgain) unsafe(`"${raw}" is no index`);
        refuse();
      }
      const key = indexOf(parent, raw);
      if (depth === keys.length) return { parent, raw, key, depth };
      if (!Object.hasOwn(parent, how === "exact" ? raw : key)) {
        if (isAgain && key in parent) unsafe(`"${raw}" is inherited`);
        refuse();
      }
      parent = parent[key] = this.#writable(parent[key], isAgain);
    }
  }

  /** @param isLoose fast-json-patch does not look whether it is a container */
  #writable(value: unknown, isLoose: boolean): Container {
    if (!isContainer(value)) {
      if (isLoose && !isNothing(value)) unsafe("a primitive has no fields");
      return refuse();
    }
    if (this.#own.has(value)) return value;
    // A Date or a Map: its content is not in fields.
    if (!Array.isArray(value) && !isRecord(value)) refuse();
    const copy: unknown = Array.isArray(value) ? [...value] : { ...value };
    this.#own.add(copy as object);
    return copy as Container; // of a container
  }

  /** A target that has a value. */
  #existing(path: string): Place {
    const place = this.#place(path, "exact");
    const { parent, raw } = place;
    if (Object.hasOwn(parent, raw)) return place;
    if (!Array.isArray(parent) && raw in parent) unsafe(`"${raw}" is inherited`);
    return refuse();
  }

  /**
   * The value at a pointer; nothing is copied on the way.
   *
   * @param as for a `test` an index is a number however it is spelt
   */
  #find(path: string, as: "from" | "test"): unknown {
    let found = this.#root;
    if (path === "") return found;
    const keys = keysOf(path);
    for (const [at, raw] of keys.entries()) {
      if (!isContainer(found)) {
        if (at === 0 && !isNothing(found)) unsafe("a primitive has no fields");
        return refuse();
      }
      const key = as === "test" ? indexOf(found, raw) : raw;
      if (!Object.hasOwn(found, key) || (Array.isArray(found) && !isIndex(raw))) {
        const isRead = as === "from" && (Array.isArray(found) || at === keys.length - 1);
        if (isRead && raw in found) unsafe(`"${raw}" is not the document's own`);
        refuse();
      }
      found = found[key];
    }
    return found;
  }

  /** The value that becomes the root: fast-json-patch takes anything, even `undefined`. */
  #rootFrom(from: string): unknown {
    try {
      return this.#find(from, "from");
    } catch {
      return unsafe("nothing becomes the root");
    }
  }

  #copy(from: string, path: string): void {
    if (path === "") {
      const root = this.#rootFrom(from);
      this.#look(root, 0);
      return this.#setRoot(cloneJson(root));
    }
    const place = this.#place(path, "loose");
    const value = this.#find(from, "from");
    const size = this.#look(value, place.depth);
    if (this.#size === undefined) {
      this.#size = weigh(this.#root, {}).size;
      this.#gone = [];
    }
    this.#grow(size);
    if (this.#size > MAX_COPIED_DOCUMENT) exceed("copied", MAX_COPIED_DOCUMENT);
    this.#insert(place, cloneJson(value));
  }

  /** Walks a value that is to be placed at this depth; the walk counts as a copy. */
  #look(value: unknown, at: number): number {
    const most = this.#bounds.copied;
    const size = this.#fitting(value, { depth: at }, most - this.#copied);
    this.#copied += size;
    if (this.#copied > most) exceed("copied", most);
    return size;
  }

  /** Refuses a value that is too deep for its target. @returns its size, see {@link weigh} */
  #fitting(value: unknown, place: { readonly depth: number }, most = Infinity): number {
    const { size, depth } = weigh(value, { size: most, depth: this.#bounds.depth - place.depth });
    if (depth > this.#bounds.depth - place.depth) exceed("depth", this.#bounds.depth);
    return size;
  }

  #add(place: Place, value: unknown): void {
    const { parent, key } = place;
    if (Array.isArray(parent) && Number(key) > parent.length) refuse();
    this.#grow(this.#fitting(value, place));
    this.#insert(place, value);
  }

  /** Inserts into a list, or sets the field of an object. */
  #insert(place: Place, value: unknown): void {
    const { parent, key } = place;
    if (!Array.isArray(parent)) return this.#put(place, value);
    const index = Number(key) < 0 ? Math.max(0, parent.length + Number(key)) : Math.min(Number(key), parent.length);
    this.#push(parent, index);
    this.#undo.push(() => parent.splice(index, 1));
    parent.splice(index, 0, value);
  }

  /** Counts the items of a list that an insertion or removal at this index moves. */
  #push(list: readonly unknown[], from: number): void {
    this.#moved += list.length - from;
    if (this.#moved > this.#bounds.moved) exceed("moved", this.#bounds.moved);
  }

  #put({ parent, key }: Place, value: unknown): void {
    const old = parent[key];
    if (Object.hasOwn(parent, key)) {
      this.#undo.push(() => (parent[key] = old));
      this.#gone.push(old);
    } else {
      this.#undo.push(() => delete parent[key]);
      this.#grow(String(key).length);
    }
    parent[key] = value;
  }

  #take({ parent, key }: Place): void {
    const old = parent[key];
    if (Array.isArray(parent)) {
      this.#push(parent, Number(key));
      this.#undo.push(() => parent.splice(Number(key), 0, old));
      parent.splice(Number(key), 1);
    } else {
      this.#undo.push(() => (parent[key] = old));
      this.#grow(-String(key).length);
      delete parent[key];
    }
  }

  #setRoot(value: unknown): void {
    const old = this.#root;
    const size = this.#fitting(value, { depth: 0 });
    this.#undo.push(() => (this.#root = old));
    if (this.#size !== undefined) this.#size = size;
    this.#gone = [];
    this.#root = value;
  }

  #grow(by: number): void {
    if (this.#size !== undefined) this.#size += by;
  }
}
