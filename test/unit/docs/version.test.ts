import { expect, test } from "vitest";
import { released } from "../../setup/version.mjs";
import { pageOf } from "./pages.js";

const CHANGELOG = "# Changelog\n\n## Unreleased\n\n- New.\n\n## 0.1.0 (2026-01-01)\n\n- Old.\n";

test("what is unreleased becomes the section of the version, and nothing is unreleased", () => {
  expect(released(CHANGELOG, "0.2.0", "2026-02-03")).toBe(
    "# Changelog\n\n## Unreleased\n\n## 0.2.0 (2026-02-03)\n\n- New.\n\n## 0.1.0 (2026-01-01)\n\n- Old.\n",
  );
});

test("the changelog of the project can be released", () => {
  const { text } = pageOf("CHANGELOG.md");
  const next = released(text, "99.0.0", "2026-02-03");
  expect(next.length - text.length).toBe("\n## 99.0.0 (2026-02-03)\n".length);
});

test.each([
  ["nothing is unreleased", "# Changelog\n\n## Unreleased\n\n## 0.1.0 (2026-01-01)\n", /nothing under Unreleased/],
  ["there is no such heading", "# Changelog\n", /no heading/],
  ["the version is there", CHANGELOG.replace("0.1.0", "0.2.0"), /has a section of 0\.2\.0/],
])("no version is made where %s", (_, changelog, message) => {
  expect(() => released(changelog, "0.2.0", "2026-02-03")).toThrow(message);
});
