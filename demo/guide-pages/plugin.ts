import { readdirSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import type { Plugin } from "vite";
import { guidePage, INDEX } from "./page.js";

/**
 * The guides of a folder as pages of the site: `/guides/<name>.html` for each `<name>.md`, made when they are built or asked
 * for.
 *
 * @param folder `guides` in the site's root
 */
export function guidePages(folder: string): Plugin {
  const read = (name: string): string => readFileSync(join(folder, `${name}.md`), "utf8");
  const names = (): string[] =>
    readdirSync(folder)
      .filter((file) => file.endsWith(".md"))
      .map((file) => basename(file, ".md"));
  const page = (name: string): string => guidePage(name, read(name), read(INDEX));
  /** The guide whose page has this path; there is no such file. */
  const guideAt = (path: string): string | undefined => {
    const name = basename(path, ".html");
    return path === join(folder, `${name}.html`) && names().includes(name) ? name : undefined;
  };
  return {
    name: "guide-pages",
    config: ({ root = "." }, { command }) =>
      command === "build"
        ? {
            build: {
              rolldownOptions: {
                input: [join(root, "index.html"), ...names().map((name) => join(folder, `${name}.html`))],
              },
            },
          }
        : {},
    resolveId: (id) => (guideAt(id) === undefined ? undefined : id),
    load(id) {
      const name = guideAt(id);
      if (name === undefined) return undefined;
      this.addWatchFile(join(folder, `${name}.md`));
      return page(name);
    },
    configureServer(server) {
      server.middlewares.use((request, response, next) => {
        const url = request.originalUrl ?? "";
        const name = /^\/guides\/([\w-]*)(?:\.html)?(?:\?|$)/.exec(url)?.[1];
        const found = name === "" ? INDEX : name;
        if (found === undefined || !names().includes(found)) return next();
        server.transformIndexHtml(url, page(found)).then(
          (html) => response.setHeader("content-type", "text/html; charset=utf-8").end(html),
          (error: unknown) => next(error),
        );
      });
    },
  };
}
