/** `URL.parse`, which Safari has since 18 and Node since 22. @returns undefined if it is not a URL */
export function parseUrl(url: unknown, base?: string): URL | undefined {
  if (typeof url !== "string") return undefined;
  try {
    return new URL(url, base);
  } catch {
    return undefined;
  }
}
