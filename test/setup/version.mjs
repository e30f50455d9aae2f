// `npm version`: what is under Unreleased in CHANGELOG.md becomes the section of the new version.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const UNRELEASED = "## Unreleased\n";

/** The changelog with a section of this version and day (YYYY-MM-DD), and nothing unreleased. */
export function released(changelog, version, day) {
  const at = changelog.indexOf(`\n${UNRELEASED}`);
  if (at < 0) throw new Error(`CHANGELOG.md has no heading "${UNRELEASED.trim()}"`);
  const after = at + 1 + UNRELEASED.length;
  const [notes] = changelog.slice(after).split(/^## /m);
  if (notes.trim() === "") throw new Error("CHANGELOG.md has nothing under Unreleased: write what users see");
  if (changelog.includes(`\n## ${version} `)) throw new Error(`CHANGELOG.md has a section of ${version}`);
  return `${changelog.slice(0, after)}\n## ${version} (${day})\n${changelog.slice(after)}`;
}

// npm calls it with the new version in the environment.
if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const file = join(import.meta.dirname, "../../CHANGELOG.md");
  const day = new Date().toISOString().slice(0, 10);
  writeFileSync(file, released(readFileSync(file, "utf8"), process.env.npm_package_version, day));
}
