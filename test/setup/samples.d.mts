export declare function appFilesIn(markdown: string): ReadonlyMap<string, string>;
export declare function linesOf(files: Iterable<string>): number;
