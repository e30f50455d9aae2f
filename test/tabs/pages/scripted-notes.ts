import { type IDBPDatabase, openDB } from "idb";

/** What an agent's code notes of one execution of it. */
export interface Note {
  readonly is: "started" | "going" | "ended";
  readonly threadId: string;
  readonly runId: string;
  /** A fresh one for each execution, whatever run it is of. */
  readonly execution: string;
}

/**
 * Notes of agents, in a database of their own, so that they outlive whatever ends the agent and do not depend on what is
 * tested: what was executed twice, or at the same time, shows in them.
 */
export class Notes {
  private opening: Promise<IDBPDatabase> | undefined;

  constructor(private readonly dbName: string) {}

  /** Resolves once the note is kept. */
  async add(note: Note): Promise<void> {
    await (await this.open()).add("notes", note);
  }

  /** All of them, in the order in which they were made. */
  async all(): Promise<Note[]> {
    // What is in it was written by `add`.
    return (await (await this.open()).getAll("notes")) as Note[];
  }

  /** At the first use: the browser tells the first database that is opened that it has deleted all of them. */
  private open(): Promise<IDBPDatabase> {
    this.opening ??= openDB(`${this.dbName}.notes`, 1, {
      upgrade(db) {
        db.createObjectStore("notes", { autoIncrement: true });
      },
    });
    return this.opening;
  }
}
