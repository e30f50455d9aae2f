import { fetchSample, samples } from "./samples.js";
import { putFile } from "./files.js";
import { readTextFile } from "./intake.js";
import type { ThreadDocument } from "./message.js";

/** The demo's own texts, kept as if somebody had attached them: for threads without a document of their own. */
export async function library(): Promise<ThreadDocument[]> {
  const texts = samples.filter(({ name }) => /\.(md|txt)$/.test(name));
  return Promise.all(texts.map(async (sample) => putFile(await readTextFile(await fetchSample(sample)))));
}
