import { memo, StrictMode, useState, type FormEvent } from "react";
import { createRoot } from "react-dom/client";
import type { Message } from "@ag-ui/core";
import { RuntimeProvider, useThread, useThreads } from "ag-ui-local-runtime/react";
import { connect } from "../connect.js";

/** What was said: calls of tools have no text, and files are parts. */
const Line = memo(function Line({ message: { role, content } }: { message: Message }) {
  if (!/user|assistant/.test(role) || typeof content !== "string") return null;
  return (
    <p>
      {role}: {content}
    </p>
  );
});

interface Open {
  readonly threadId: string;
  readonly open: (threadId: string) => void;
}

function Threads({ threadId: current, open }: Open) {
  const list = useThreads();
  const [refusal, setRefusal] = useState<Error>();
  const error = refusal ?? list.error;
  const remove = (threadId: string) =>
    list.delete(threadId).then(
      () => setRefusal(undefined),
      (reason: Error) => setRefusal(reason),
    );
  return (
    <nav aria-label="Threads">
      <button onClick={() => open(crypto.randomUUID())}>New thread</button>
      {list.status === "loading" && <p>Loading…</p>}
      {list.status === "ready" && list.threads.length === 0 && <p>No threads yet.</p>}
      {list.threads.map(({ threadId, title }) => (
        <span key={threadId}>
          <button aria-current={threadId === current} onClick={() => open(threadId)}>
            {title}
          </button>
          <button aria-label={`Delete ${title}`} onClick={() => void remove(threadId)}>
            ×
          </button>
        </span>
      ))}
      {/* `error` says why */}
      {list.hasMore && <button onClick={() => void list.loadMore().catch(() => undefined)}>More</button>}
      {error && <p role="alert">{error.message}</p>}
    </nav>
  );
}

function Chat({ threadId }: Pick<Open, "threadId">) {
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
            {run.last?.error?.message ?? "Stopped."}{" "}
            <button onClick={() => void retry().catch(() => undefined)}>Run again</button>
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
  const [threadId, open] = useState<string>(() => crypto.randomUUID());
  return (
    <RuntimeProvider runtime={connect}>
      <Threads threadId={threadId} open={open} />
      <Chat threadId={threadId} />
    </RuntimeProvider>
  );
}

createRoot(document.querySelector("#app")!).render(<StrictMode children={<App />} />);
