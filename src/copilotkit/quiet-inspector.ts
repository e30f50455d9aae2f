/** The id of the stylesheet with web fonts that the inspector adds to a page, unless the page has it. */
const FONTS = "cpk-inspector-brand-fonts";

/** Where the inspector keeps that somebody wants no usage reports sent. */
const NO_REPORTS = "cpk:inspector:telemetry:opt_out";

const VENDOR = "copilotkit.ai";
const NO_NEWS = { schemaVersion: 1, notifications: [] };

function isVendor(input: RequestInfo | URL): boolean {
  const url = input instanceof Request ? input.url : String(input);
  if (!URL.canParse(url, location.href)) return false;
  const { hostname } = new URL(url, location.href);
  return hostname === VENDOR || hostname.endsWith(`.${VENDOR}`);
}

/**
 * Has CopilotKit's inspector ask nobody outside, so that it works without a network: no web fonts, no usage reports, and
 * an empty list of news in place of what it fetches from copilotkit.ai. Videos and links that somebody opens in it are
 * still fetched. Call it in the browser before the page is rendered; of several calls the first one counts.
 */
export function quietInspector(): void {
  if (document.getElementById(FONTS) !== null) return;
  const fonts = document.createElement("style");
  fonts.id = FONTS;
  document.head.append(fonts);
  try {
    localStorage.setItem(NO_REPORTS, "true");
  } catch {
    // A page without storage: its reports are answered below.
  }
  const { fetch } = globalThis;
  globalThis.fetch = (input, init) =>
    isVendor(input) ? Promise.resolve(Response.json(NO_NEWS)) : fetch.call(globalThis, input, init);
}
