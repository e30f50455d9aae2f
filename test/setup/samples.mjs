/** The files of an app that a page of documentation has whole: a paragraph begins with the name, the code follows. */
export const appFilesIn = (markdown) =>
  new Map(
    [...markdown.matchAll(/^`((?:src\/)?[\w.]+\.\w+)`[^\n]*\n(?:[^\n]+\n)*\n```\w+\n([^]*?)\n```$/gm)].map(
      ([, path, code]) => [path, code],
    ),
  );

/** How many lines of these files say something. */
export const linesOf = (files) =>
  [...files].reduce((sum, code) => sum + code.split("\n").filter((line) => line.trim() !== "").length, 0);
