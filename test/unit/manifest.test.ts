import { readFileSync } from "node:fs";
import { expect, test } from "vitest";

interface Manifest {
  readonly dependencies: Readonly<Record<string, string>>;
  readonly devDependencies: Readonly<Record<string, string>>;
  readonly peerDependencies: Readonly<Record<string, string>>;
  readonly scripts: Readonly<Record<string, string>>;
}

const read = (path: string): unknown => JSON.parse(readFileSync(new URL(`../../${path}`, import.meta.url), "utf8"));
const manifest = read("package.json") as Manifest;
const { packages } = read("package-lock.json") as {
  packages: Readonly<Record<string, Manifest & { readonly version: string }>>;
};

const isRange = (version: string): boolean => version.split(" || ").every((one) => /^[~^]\d+\.\d+\.\d+$/.test(one));
const isExact = (version: string): boolean => /^(npm:@?[\w/-]+@)?\d+\.\d+\.\d+$/.test(version);
const others = (versions: Readonly<Record<string, string>>, isRight: (version: string) => boolean): string[] =>
  Object.entries(versions).flatMap(([name, version]) => (isRight(version) ? [] : [`${name}: ${version}`]));

test("what users install is a range, so that an app has one copy of it", () => {
  expect(others({ ...manifest.dependencies, ...manifest.peerDependencies }, isRange)).toEqual([]);
});

test("below 1.0, and of the AG-UI client, whose inner methods runs go through, only patches are taken", () => {
  const tied = Object.entries({ ...manifest.dependencies, ...manifest.peerDependencies }).filter(
    ([name, version]) => name.startsWith("@ag-ui/") || /^\D?0\./.test(version),
  );
  expect(others(Object.fromEntries(tied), (version) => version.startsWith("~"))).toEqual([]);
});

/** Folders of this repository that have dependencies of their own. */
const own = Object.values(manifest.devDependencies)
  .filter((version) => version.startsWith("file:demo/"))
  .map((version) => version.slice("file:".length));

test("what the project is built and tested with is exact", () => {
  expect(others(manifest.devDependencies, (version) => isExact(version) || version.startsWith("file:demo/"))).toEqual(
    [],
  );
  for (const folder of own) {
    expect(others((read(`${folder}/package.json`) as Manifest).dependencies, isExact), folder).toEqual([]);
  }
});

test("the lock has what the manifest asks for", () => {
  const locked = packages[""]!;
  expect(locked.dependencies).toEqual(manifest.dependencies);
  expect(locked.devDependencies).toEqual(manifest.devDependencies);
  expect(locked.peerDependencies).toEqual(manifest.peerDependencies);
  for (const [name, version] of Object.entries({ ...manifest.dependencies, ...manifest.devDependencies })) {
    if (!version.startsWith("file:")) expect(packages[`node_modules/${name}`]?.version, name).toMatch(/^\d/);
  }
  for (const folder of own) {
    expect(packages[folder]?.dependencies, folder).toEqual((read(`${folder}/package.json`) as Manifest).dependencies);
  }
});

test("what is published is built first", () => {
  expect(manifest.scripts["prepack"]).toBe("npm run build");
});
