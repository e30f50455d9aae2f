import { readFile, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { format, resolveConfig } from "prettier";
import type { Figure } from "./figures.js";
import { withTables } from "./guide-tables.js";
import { merge, type KeptTable, type Measured } from "./kept.js";

const at = (path: string): string => fileURLToPath(new URL(path, import.meta.url));
export const KEPT = at("kept.json");
export const GUIDE = at("../../demo/guides/figures.md");

/** As `npm run format` leaves a file. */
export const formatted = async (path: string, text: string): Promise<string> =>
  format(text, { ...(await resolveConfig(path)), filepath: path });

// The bench alone writes it.
export const readKept = async (): Promise<KeptTable[]> => JSON.parse(await readFile(KEPT, "utf8")) as KeptTable[];

/** Merges figures into the kept file and writes the guide's tables. */
export async function keepFigures(
  figures: readonly Figure[],
  measured: Measured,
  sections: readonly string[],
): Promise<void> {
  const kept = merge(await readKept(), figures, measured, sections);
  await writeFile(KEPT, await formatted(KEPT, JSON.stringify(kept)));
  await writeFile(GUIDE, await formatted(GUIDE, withTables(await readFile(GUIDE, "utf8"), kept)));
}
