import { useState, type ComponentProps } from "react";
import { CopilotChatMessageView, useAgent, useCopilotKit } from "@copilotkit/react-core/v2";
import {
  editMessage,
  regenerate,
  RunFailure,
  useSharedTools,
  type MessageContent,
  type SharedToolsOptions,
} from "ag-ui-local-runtime/copilotkit";
import { textOf, withText } from "./content.js";
import { ToolCalls } from "./tool-calls.js";

/** CopilotKit's messages, with what it leaves to the page: why a run failed, regenerate, edit. */
export const Messages = Object.assign(View, { Cursor: CopilotChatMessageView.Cursor });

const shared: SharedToolsOptions = {
  notRepeatable: ["pay"],
  onError: ({ message }) => console.warn(`A tool's call: ${message}`),
};

function View(props: ComponentProps<typeof CopilotChatMessageView>) {
  const { copilotkit } = useCopilotKit();
  const { agent } = useAgent();
  const tools = useSharedTools(copilotkit, agent, shared);
  const [edited, setEdited] = useState<{ id: string; content: MessageContent; text: string }>();
  const [refusal, setRefusal] = useState<Error>();
  const tell = (call: Promise<void>) => void call.then(() => setRefusal(undefined), setRefusal);
  const cancel = () => setEdited(undefined);
  return (
    <>
      <CopilotChatMessageView
        {...props}
        assistantMessage={{ onRegenerate: ({ id }) => tell(regenerate(copilotkit, agent, id)) }}
        userMessage={{
          onEditMessage: ({ message }) => {
            // In CopilotKit's types what is absent may also be undefined.
            const content = message.content as MessageContent;
            setEdited({ id: message.id, content, text: textOf(content) });
          },
        }}
      />
      {edited && (
        <form
          className="edit"
          onKeyDown={({ key }) => key === "Escape" && cancel()}
          onSubmit={(event) => {
            event.preventDefault();
            // Nothing would be asked: the words stay, until the run has ended.
            if (agent.isRunning) return;
            tell(editMessage(copilotkit, agent, edited.id, withText(edited.content, edited.text)));
            cancel();
          }}
        >
          <input
            aria-label="Other question"
            value={edited.text}
            onChange={({ target }) => setEdited({ ...edited, text: target.value })}
            autoFocus
            required
          />
          <button disabled={agent.isRunning}>Ask instead</button>
          <button type="button" onClick={cancel}>
            Cancel
          </button>
        </form>
      )}
      {refusal && (
        <p className="card" role="alert">
          {refusal.message}
        </p>
      )}
      <ToolCalls tools={tools} tell={tell} />
      <RunFailure agent={agent} onRetry={() => tell(regenerate(copilotkit, agent))} />
    </>
  );
}
