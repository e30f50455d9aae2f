export interface Sample {
  readonly name: string;
  readonly url: string;
}

/** The files of demo/samples, as assets of this origin (never inlined: `connect-src` is 'self'). */
const files = import.meta.glob<string>("../samples/*.{txt,md,csv,tsv,json}", {
  eager: true,
  query: "?url&no-inline",
  import: "default",
});

export const samples: readonly Sample[] = Object.entries(files).map(([path, url]) => ({
  name: path.slice(path.lastIndexOf("/") + 1),
  url,
}));

/**
 * @param sample one of {@link samples}, or its name
 * @throws {TypeError} when the server cannot be reached
 */
export async function fetchSample(sample: Sample | string): Promise<File> {
  const found = typeof sample === "string" ? samples.find(({ name }) => name === sample) : sample;
  if (!found) throw new TypeError(`There is no sample “${String(sample)}”.`);
  const { name, url } = found;
  const response = await fetch(url).catch(() => undefined);
  if (!response?.ok) throw new TypeError(`“${name}” could not be fetched from the demo's server.`);
  return new File([await response.blob()], name);
}
