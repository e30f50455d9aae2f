import { memo, StrictMode, useState, type FormEvent } from "react";
import { createRoot } from "react-dom/client";
import type { Message } from "@ag-ui/core";
import { RuntimeProvider, useThread, useThreads } from "ag-ui-local-runtime/react";
import { connect } from "../connect.js";

const Line = memo(function Line({ message }: { message: Message }) {
  return (
    <p>
      {message.role}: {String(message.content)}
    </p>
  );
});

function Threads({ open }: { open: (threadId: string | undefined) => void }) {
  const { threads, status, hasMore, loadMore, delete: remove } = useThreads();
  return (
    <nav aria-label="Threads">
      <button onClick={() => open(undefined)}>New thread</button>
      {status === "ready" && threads.length === 0 && <p>No threads yet.</p>}
      {threads.map(({ threadId, title }) => (
        <span key={threadId}>
          <button onClick={() => open(threadId)}>{title}</button>
          <button aria-label={`Delete ${title}`} onClick={() => void remove(threadId)}>
            ×
          </button>
        </span>
      ))}
      {hasMore && <button onClick={() => void loadMore()}>More</button>}
    </nav>
  );
}

function Chat({ threadId }: { threadId: string | undefined }) {
  const { messages, run, isSending, isStopping, error, send, stop, retry } = useThread(threadId, { agentId: "poet" });
  const [text, setText] = useState("");
  const isRunning = run.is === "running";
  const failed = run.is === "idle" && run.last !== undefined && run.last.status !== "finished";
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    setText("");
    await send(text).catch(() => setText(text)); // refused: `error` says why
  };
  return (
    <main>
      <div role="log" aria-label="Conversation" aria-busy={isRunning}>
        {messages.map((message) => (
          <Line key={message.id} message={message} />
        ))}
        {failed && (
          <p>
            {run.last?.error?.message ?? "Stopped."} <button onClick={() => void retry()}>Run again</button>
          </p>
        )}
      </div>
      <form onSubmit={submit}>
        <input aria-label="Message" value={text} onChange={(event) => setText(event.target.value)} required />
        <button disabled={isSending || isRunning}>Send</button>
        <button type="button" disabled={!isRunning || isStopping} onClick={stop}>
          Stop
        </button>
      </form>
      {error && <p role="alert">{error.message}</p>}
    </main>
  );
}

function App() {
  const [threadId, open] = useState<string>();
  return (
    <RuntimeProvider runtime={connect}>
      <Threads open={open} />
      <Chat threadId={threadId} />
    </RuntimeProvider>
  );
}

createRoot(document.querySelector("#app")!).render(<StrictMode children={<App />} />);
