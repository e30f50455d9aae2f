import { existsSync, readdirSync, readFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import type { Plugin } from "vite";
import { guidePage, INDEX, README, readmeAsGuide, type Folder } from "./page.js";

/**
 * The guides, and the API reference where it was made (`npm run reference`), as pages of the site: `/guides/<name>.html` for
 * each `guides/<name>.md`, made when they are built or asked for. The repository's README is one of the guides.
 *
 * @param root the site's root
 */
export function guidePages(root: string): Plugin {
  const folders = (): Folder[] =>
    (["guides", "reference"] as const).filter((folder) => existsSync(join(root, folder, `${INDEX}.md`)));
  const isReadme = (folder: Folder, name: string): boolean => folder === "guides" && name === README;
  const fileOf = (folder: Folder, name: string): string =>
    isReadme(folder, name) ? join(root, "../README.md") : join(root, folder, `${name}.md`);
  const read = (folder: Folder, name: string): string => {
    const text = readFileSync(fileOf(folder, name), "utf8");
    return isReadme(folder, name) ? readmeAsGuide(text) : text;
  };
  const names = (folder: Folder): string[] => [
    ...(folder === "guides" ? [README] : []),
    ...readdirSync(join(root, folder))
      .filter((file) => file.endsWith(".md"))
      .map((file) => basename(file, ".md")),
  ];
  const page = (folder: Folder, name: string): string =>
    guidePage(name, read(folder, name), read(folder, INDEX), { folder, folders: folders() });
  /** The page that has this path; there is no such file. */
  const pageAt = (path: string): { readonly folder: Folder; readonly name: string } | undefined => {
    if (!path.endsWith(".html")) return undefined;
    const folder = folders().find((it) => dirname(path) === join(root, it));
    const name = basename(path, ".html");
    return folder !== undefined && names(folder).includes(name) ? { folder, name } : undefined;
  };
  return {
    name: "guide-pages",
    config: (_, { command }) =>
      command === "build"
        ? {
            build: {
              rolldownOptions: {
                input: [
                  join(root, "index.html"),
                  ...folders().flatMap((folder) => names(folder).map((name) => join(root, folder, `${name}.html`))),
                ],
              },
            },
          }
        : {},
    resolveId: (id) => (pageAt(id) === undefined ? undefined : id),
    load(id) {
      const found = pageAt(id);
      if (found === undefined) return undefined;
      this.addWatchFile(fileOf(found.folder, found.name));
      return page(found.folder, found.name);
    },
    configureServer(server) {
      server.middlewares.use((request, response, next) => {
        const url = request.originalUrl ?? "";
        const [, folder = "", name = ""] = /^\/(guides|reference)\/([\w.-]*?)(?:\.html)?(?:\?|$)/.exec(url) ?? [];
        const found = pageAt(join(root, folder, `${name === "" ? INDEX : name}.html`));
        if (found === undefined) return next();
        server.transformIndexHtml(url, page(found.folder, found.name)).then(
          (html) => response.setHeader("content-type", "text/html; charset=utf-8").end(html),
          (error: unknown) => next(error),
        );
      });
    },
  };
}
