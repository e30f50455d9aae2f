export interface Sample {
  readonly name: string;
  readonly url: string;
}

/** The files of demo/samples, as assets of this origin (never inlined: `connect-src` is 'self'). */
const found = import.meta.glob<string>("../samples/*.{txt,md,csv,tsv,json}", {
  eager: true,
  query: "?url&no-inline",
  import: "default",
});

export const samples: readonly Sample[] = Object.entries(found).map(([path, url]) => ({
  name: path.slice(path.lastIndexOf("/") + 1),
  url,
}));

/** @throws {TypeError} when the server cannot be reached */
export async function fetchSample({ name, url }: Sample): Promise<File> {
  const response = await fetch(url);
  if (!response.ok) throw new TypeError(`${name}: ${response.status} ${response.statusText}`);
  return new File([await response.blob()], name);
}
