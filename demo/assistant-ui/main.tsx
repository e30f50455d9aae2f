import "./policy.js";
import { StrictMode, useState } from "react";
import { createRoot } from "react-dom/client";
import {
  AssistantRuntimeProvider,
  AuiIf,
  ComposerPrimitive as Composer,
  MessagePrimitive as Message,
  ThreadListItemPrimitive as Item,
  ThreadListPrimitive as ThreadList,
  ThreadPrimitive as Thread,
  useAssistantTool,
  useAui,
  useAuiState,
} from "@assistant-ui/react";
import { useAgUiInterrupts, useAgUiSubmitInterruptResponses } from "@assistant-ui/react-ag-ui";
import { useAssistantUi } from "../recipes/assistant-ui.js";
import { connect } from "./connect.js";
const runtime = connect();

function ThreadItem() {
  const title = useAuiState(({ threadListItem }) => threadListItem.title ?? "New");
  const item = useAui().threadListItem();
  return (
    <Item.Root>
      <Item.Trigger>{title}</Item.Trigger>{" "}
      <button onClick={() => void item.rename(`${title} (renamed)`)}>{`Rename ${title}`}</button>
      <Item.Archive aria-label={`Archive ${title}`}>Archive</Item.Archive>
      <Item.Unarchive aria-label={`Unarchive ${title}`}>Unarchive</Item.Unarchive>
      <Item.Delete aria-label={`Delete ${title}`}>×</Item.Delete>
    </Item.Root>
  );
}

const Threads = () => (
  <ThreadList.Root render={<nav aria-label="Threads" />}>
    <ThreadList.New>New thread</ThreadList.New>
    <ThreadList.Items>{() => <ThreadItem />}</ThreadList.Items>
    <h2>Archived</h2>
    <ThreadList.Items archived>{() => <ThreadItem />}</ThreadList.Items>
  </ThreadList.Root>
);

function Line() {
  const { role, status } = useAuiState(({ message }) => message);
  const end = status?.type === "incomplete" && (status.reason === "error" ? String(status.error) : "Stopped.");
  return (
    <Message.Root>
      {`${role}: `}
      <Message.Parts>
        {({ part }) => {
          if (part.type !== "tool-call") return part.type === "text" ? <span>{part.text}</span> : null;
          return <code>{`${part.toolName}(${part.argsText}) = ${JSON.stringify(part.result)}`}</code>;
        }}
      </Message.Parts>
      <strong>{end}</strong>
    </Message.Root>
  );
}

function Interrupts() {
  const interrupts = useAgUiInterrupts();
  const respond = useAgUiSubmitInterruptResponses();
  const [refusal, setRefusal] = useState<Error>();
  const answer = (interruptId: string, status: "resolved" | "cancelled") =>
    void respond([{ interruptId, status }]).then(() => setRefusal(undefined), setRefusal);
  return (
    <>
      {interrupts.map(({ id, message }) => (
        <p key={id}>
          <button onClick={() => answer(id, "resolved")}>{message}</button>{" "}
          <button onClick={() => answer(id, "cancelled")}>Cancel</button>
        </p>
      ))}
      {refusal && <p role="alert">{refusal.message}</p>}
    </>
  );
}

function Chat() {
  useAssistantTool({
    toolName: "colour",
    parameters: { type: "object", properties: { at: { type: "string" } } },
    execute: async ({ at }: { at: string }) => `${at} is blue`,
  });
  return (
    <Thread.Root render={<main />}>
      <div role="log" aria-label="Conversation">
        <Thread.Messages>{() => <Line />}</Thread.Messages>
        <Interrupts />
      </div>
      <Composer.Root>
        <Composer.Input aria-label="Message" />
        <AuiIf condition={({ thread }) => !thread.isRunning}>
          <Composer.Send>Send</Composer.Send>
        </AuiIf>
        <AuiIf condition={({ thread }) => thread.isRunning}>
          <Composer.Cancel>Stop</Composer.Cancel>
        </AuiIf>
      </Composer.Root>
    </Thread.Root>
  );
}

const Assistant = () => (
  <AssistantRuntimeProvider runtime={useAssistantUi(runtime, "poet")}>
    <Threads />
    <Chat />
  </AssistantRuntimeProvider>
);

/** The assistant is a part of a page, which opens and closes it. */
function App() {
  const [isOpen, setIsOpen] = useState(true);
  return (
    <>
      <button onClick={() => setIsOpen(!isOpen)}>{isOpen ? "Close the assistant" : "Open the assistant"}</button>
      {isOpen && <Assistant />}
    </>
  );
}

createRoot(document.querySelector("#app")!).render(<StrictMode children={<App />} />);
