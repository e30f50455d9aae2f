import "vitest";

declare module "vitest" {
  /** What vite.config.ts and global setups hand to the tests. */
  interface ProvidedContext {
    /** Which browser the tabs suites drive. */
    engine: "chromium" | "firefox" | "webkit";
    /** Root of the dev server of the demo, with a slash at its end. */
    origin: string;
    /** Root of the server that has test/tabs/pages, built, with a slash at its end. */
    pages: string;
    /** Root of the server that has the examples of demo/frameworks, built with React 18. */
    react18: string;
    /** Root of the server that has the example of demo/assistant-ui, built, with a slash at its end. */
    assistantUi: string;
    /** Roots of the servers that have the page of demo/copilotkit: built, and as it is developed. */
    copilotkit: { readonly built: string; readonly developed: string };
    /** Addresses of an MCP server (`startMcpServer`), for tests in a page. */
    mcp: { readonly url: string; readonly sseUrl: string };
  }
}
