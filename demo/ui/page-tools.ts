import { FrontendTools } from "ag-ui-local-runtime/client";

const THEMES = ["light", "dark"] as const;

/** What an agent may do with this page: its calls run in the tab that asked. */
export function pageTools(changed: () => void): FrontendTools {
  const tools = new FrontendTools();
  tools.add<{ theme?: unknown } | null>({
    name: "setTheme",
    description: "Makes the page light or dark, until it is reloaded",
    parameters: {
      type: "object",
      properties: { theme: { type: "string", enum: THEMES } },
      required: ["theme"],
    },
    handler: (args) => {
      const theme = THEMES.find((it) => it === args?.theme);
      if (!theme) throw new Error("theme is “light” or “dark”");
      document.documentElement.dataset["theme"] = theme;
      changed();
      return `This page is ${theme} now.`;
    },
  });
  return tools;
}
