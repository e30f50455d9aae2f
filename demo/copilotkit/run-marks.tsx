import type { ComponentProps } from "react";
import type { CopilotKitProvider } from "@copilotkit/react-core/v2";

type Renderer = NonNullable<ComponentProps<typeof CopilotKitProvider>["renderCustomMessages"]>[number];

/**
 * Says in the page's DOM which run an answer is of: the same one in each tab, and after a reload. Nothing is shown.
 * (Questions have no run of their own in CopilotKit until they are read again.)
 */
export const runMarks: Renderer = {
  render: ({ message, position, runId }) =>
    position === "after" && message.role === "assistant" ? (
      <span hidden data-run={runId} data-message={message.id} />
    ) : null,
};
