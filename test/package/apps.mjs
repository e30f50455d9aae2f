// The apps that README and guides have whole, built as their readers would build them.
import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { compile as compileSvelte } from "svelte/compiler";
import { build } from "vite";
import { compileScript, parse } from "vue/compiler-sfc";
import { ROOT } from "../setup/install.mjs";
import { appFilesIn } from "../setup/samples.mjs";

/** What `npm create vite` makes and the pages leave as it is. */
const REACT_MAIN = `import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import App from "./App.tsx";

createRoot(document.getElementById("root")!).render(<StrictMode children={<App />} />);
`;
const SVELTE_MAIN = `import { mount } from "svelte";
import App from "./App.svelte";

mount(App, { target: document.getElementById("app")! });
`;
const page = (main) => `<body>
  <div id="app"></div>
  <div id="root"></div>
  <script type="module" src="/src/${main}"></script>
</body>
`;

/** As the plugins of Vue and Svelte do it, without what a dev server needs. */
const components = {
  name: "components",
  transform(code, id) {
    if (id.endsWith(".vue")) {
      const { descriptor, errors } = parse(code, { filename: id });
      if (errors.length > 0) throw errors[0];
      return { code: compileScript(descriptor, { id: "app", inlineTemplate: true }).content, moduleType: "ts" };
    }
    if (id.endsWith(".svelte")) {
      const { js, warnings } = compileSvelte(code, { filename: id, generate: "client" });
      if (warnings.length > 0) throw new Error(warnings.map(({ message }) => message).join("\n"));
      return { code: js.code, moduleType: "js" };
    }
    return undefined;
  },
};

/** The apps by name: their files by path. */
function appsOf(home) {
  const filesOf = (path) => Object.fromEntries(appFilesIn(readFileSync(join(home, path), "utf8")));
  const readme = filesOf("README.md");
  const guide = filesOf("demo/guides/front-ends.md");
  const client = filesOf("demo/guides/client.md");
  const shared = Object.fromEntries(["src/agents.worker.ts", "src/connect.ts"].map((path) => [path, readme[path]]));
  const pick = (path) => ({ ...shared, [path]: guide[path] });
  return {
    react: { ...readme, "src/main.tsx": REACT_MAIN, "index.html": page("main.tsx") },
    vue: {
      ...pick("src/App.vue"),
      "src/main.ts": guide["src/main.ts"],
      "src/style.css": "",
      "index.html": page("main.ts"),
    },
    svelte: { ...pick("src/App.svelte"), "src/main.ts": SVELTE_MAIN, "index.html": page("main.ts") },
    vanilla: { ...shared, ...client },
  };
}

/** As the template of create-vite for React has it. */
const TSC = ["--noEmit", "--strict", "--target", "es2023", "--lib", "es2023,dom", "--module", "esnext"].concat(
  ["--moduleResolution", "bundler", "--allowImportingTsExtensions", "--verbatimModuleSyntax", "--skipLibCheck"],
  ["--noUnusedLocals", "--noUnusedParameters", "--jsx", "react-jsx", "--types", ""],
);

/**
 * Builds each app, and compiles those that have TypeScript alone.
 *
 * @param project where packages are found
 * @param home of the package that was packed
 * @returns {Promise<string[]>} what is wrong
 */
export async function buildApps(project, home) {
  const faults = [];
  for (const [name, files] of Object.entries(appsOf(home))) {
    const root = join(project, `app-${name}`);
    for (const [path, code] of Object.entries(files)) {
      mkdirSync(dirname(join(root, path)), { recursive: true });
      writeFileSync(join(root, path), code);
    }
    if (name === "react" || name === "vanilla") {
      const tsc = join(ROOT, "node_modules/typescript/bin/tsc");
      const sources = Object.keys(files).filter((path) => /\.tsx?$/.test(path));
      const { stdout, status } = spawnSync(process.execPath, [tsc, ...TSC, ...sources], {
        cwd: root,
        encoding: "utf8",
      });
      if (status !== 0) faults.push(`${name}: ${stdout}`);
    }
    const warnings = [];
    const result = await build({
      root,
      configFile: false,
      logLevel: "silent",
      plugins: [components],
      build: {
        write: false,
        rolldownOptions: {
          onwarn: ({ message }) => warnings.push(message),
          // How long a build takes is the machine's matter.
          checks: { bundlerTimings: false },
        },
      },
    }).catch((error) => faults.push(`${name}: ${error.message}`));
    faults.push(...warnings.map((message) => `${name}: ${message}`));
    const built = result.output?.map(({ fileName }) => fileName) ?? [];
    if (!built.some((fileName) => /agents\.worker-.*\.js$/.test(fileName))) faults.push(`${name}: no worker was built`);
  }
  return faults;
}
