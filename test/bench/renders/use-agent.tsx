import { useEffect, type ReactNode } from "react";
import {
  CopilotChatConfigurationProvider,
  CopilotKitProvider,
  useAgent,
  useCopilotKit,
} from "@copilotkit/react-core/v2";
import { useCopilotKitAgents } from "ag-ui-local-runtime/copilotkit";
import { RuntimeProvider } from "ag-ui-local-runtime/react";
import { Stage } from "./shown.js";
import { perform } from "./stage.js";

/** Neither the hook nor the provider is given a throttle: that is CopilotKit's default. */
function Chat(): ReactNode {
  const { copilotkit } = useCopilotKit();
  const { agent } = useAgent();
  // As CopilotKit's own chat reads its thread.
  useEffect(() => {
    void copilotkit.connectAgent({ agent });
    return () => void agent.detachActiveRun();
  }, [copilotkit, agent]);
  return Stage({
    isRunning: agent.isRunning,
    send: (content) => {
      agent.addMessage({ id: crypto.randomUUID(), role: "user", content });
      return copilotkit.runAgent({ agent });
    },
    messages: agent.messages.map(({ id, role, content }) => ({ id, role, text: String(content) })),
  });
}

function Page({ threadId }: { readonly threadId: string }): ReactNode {
  return (
    <CopilotKitProvider agents__unsafe_dev_only={useCopilotKitAgents(["writer"])} enableInspector={false}>
      <CopilotChatConfigurationProvider agentId="writer" threadId={threadId}>
        <Chat />
      </CopilotChatConfigurationProvider>
    </CopilotKitProvider>
  );
}

perform(async (runtime, threadId) => (
  <RuntimeProvider runtime={runtime}>
    <Page threadId={threadId} />
  </RuntimeProvider>
));
