import { useState, type ComponentProps } from "react";
import { CopilotChatMessageView, useAgent, useCopilotKit } from "@copilotkit/react-core/v2";
import {
  editMessage,
  regenerate,
  RunFailure,
  useSharedTools,
  type SharedToolsOptions,
} from "ag-ui-local-runtime/copilotkit";
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
  const [edited, setEdited] = useState<{ id: string; text: string }>();
  const [refusal, setRefusal] = useState<Error>();
  const tell = (call: Promise<void>) => void call.then(() => setRefusal(undefined), setRefusal);
  const cancel = () => setEdited(undefined);
  return (
    <>
      <CopilotChatMessageView
        {...props}
        assistantMessage={{ onRegenerate: ({ id }) => tell(regenerate(copilotkit, agent, id)) }}
        userMessage={{
          onEditMessage: ({ message: { id, content } }) =>
            setEdited({ id, text: typeof content === "string" ? content : "" }),
        }}
      />
      {edited && (
        <form
          className="edit"
          onKeyDown={({ key }) => key === "Escape" && cancel()}
          onSubmit={(event) => {
            event.preventDefault();
            cancel();
            tell(editMessage(copilotkit, agent, edited.id, edited.text));
          }}
        >
          <input
            aria-label="Other question"
            value={edited.text}
            onChange={({ target }) => setEdited({ ...edited, text: target.value })}
            autoFocus
          />
          <button>Ask instead</button>
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
      <ToolCalls tools={tools} />
      <RunFailure agent={agent} onRetry={() => tell(regenerate(copilotkit, agent))} />
    </>
  );
}
