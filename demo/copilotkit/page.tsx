import { useEffect, useState } from "react";
import {
  CopilotChat,
  CopilotChatConfigurationProvider,
  CopilotKitInspector,
  CopilotKitProvider,
  useCopilotKit,
} from "@copilotkit/react-core/v2";
import { ThreadList, useCopilotKitAgents } from "ag-ui-local-runtime/copilotkit";
import { progress } from "./activities.js";
import { Asking } from "./asking.js";
import { Interrupts } from "./interrupts.js";
import { Messages } from "./messages.js";
import { runMarks } from "./run-marks.js";
import { SharedState } from "./shared-state.js";
import { Suggestions } from "./suggestions.js";
import { Tools } from "./tools.js";

/** The thread is in the address: a reload, and a tab with the same address, show the same one. */
function useThreadOfAddress(): [threadId: string, open: (threadId: string) => void] {
  const [threadId, setThreadId] = useState(() => location.hash.slice(1) || crypto.randomUUID());
  useEffect(() => history.replaceState(null, "", `#${threadId}`), [threadId]);
  return [threadId, setThreadId];
}

const activities = [progress];
const customMessages = [runMarks];

/** CopilotKit shows it by itself in development only; here by `?inspector`. */
function Inspector() {
  const { copilotkit } = useCopilotKit();
  return new URLSearchParams(location.search).has("inspector") && <CopilotKitInspector core={copilotkit} />;
}

/** Failed runs are shown in the chat, see `Messages`; what was refused before it became a run is told here alone. */
const tell = ({ code, error }: { code: string; error: Error }): void => console.warn(`${code}: ${error.message}`);

export function Page() {
  const [threadId, open] = useThreadOfAddress();
  const [colour, setColour] = useState("#f4f4f2");
  return (
    <CopilotKitProvider
      agents__unsafe_dev_only={useCopilotKitAgents(["assistant"])}
      enableInspector={false}
      renderActivityMessages={activities}
      renderCustomMessages={customMessages}
      onError={tell}
    >
      <CopilotChatConfigurationProvider agentId="assistant" threadId={threadId}>
        <aside style={{ background: colour }}>
          <h1>CopilotKit, no server</h1>
          <ThreadList threadId={threadId} onOpen={open} onNew={() => open(crypto.randomUUID())} limit={20} />
          <SharedState />
        </aside>
        <Inspector />
        <main>
          <Tools setColour={setColour} />
          <Asking />
          <Suggestions />
          {/* Interrupts of one thread are none of another. */}
          <Interrupts key={threadId} />
          <CopilotChat messageView={Messages} />
        </main>
      </CopilotChatConfigurationProvider>
    </CopilotKitProvider>
  );
}
