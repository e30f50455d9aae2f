import { type FileRef, FileStoreError, putFile } from "../documents/files.js";
import { IntakeError, readTextFile, type TextFile } from "../documents/intake.js";

/** What became of the files that somebody chose, dropped or pasted. */
export interface Intake {
  readonly refs: readonly FileRef[];
  /** One sentence for each file that was not taken. */
  readonly refusals: readonly string[];
}

/** Reads the files and keeps them in this browser, where the agent finds them. */
export async function takeFiles(files: readonly File[]): Promise<Intake> {
  return take(files.map((file) => () => readTextFile(file)));
}

/** A text as if it were a file. */
export async function takeText(file: TextFile): Promise<Intake> {
  return take([() => Promise.resolve(file)]);
}

async function take(readers: readonly (() => Promise<TextFile>)[]): Promise<Intake> {
  const refs: FileRef[] = [];
  const refusals: string[] = [];
  for (const read of readers) {
    try {
      refs.push(await putFile(await read()));
    } catch (error) {
      if (!(error instanceof IntakeError) && !(error instanceof FileStoreError)) throw error;
      refusals.push(error.message);
    }
  }
  return { refs, refusals };
}
