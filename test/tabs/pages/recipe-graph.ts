import { EventType, type Event } from "@ag-ui/core";
import { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { type AIMessage, AIMessageChunk, type BaseMessage, ToolMessage } from "@langchain/core/messages";
import { ChatGenerationChunk, type ChatResult } from "@langchain/core/outputs";
import type { BaseCheckpointSaver } from "@langchain/langgraph-checkpoint";
import { END, type LangGraphRunnableConfig, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph/web";
import { ask } from "../../../demo/recipes/langgraph.js";

type State = typeof MessagesAnnotation.State;

/** What a shop's model says: asked to order it calls a tool, in pieces; told its result, or anything else, it says so. */
export class ShopModel extends BaseChatModel {
  /** The texts of all messages that it was given, by question. */
  readonly asked: string[][] = [];

  _llmType(): string {
    return "shop";
  }

  _generate(): Promise<ChatResult> {
    throw new Error("it streams");
  }

  override async *_streamResponseChunks(
    messages: BaseMessage[],
    _options: this["ParsedCallOptions"],
    run?: {
      handleLLMNewToken: (token: string, ...more: [undefined, undefined, undefined, undefined, object]) => unknown;
    },
  ): AsyncGenerator<ChatGenerationChunk> {
    this.asked.push(messages.map(({ text }) => text));
    const { text, type } = messages.at(-1)!;
    const calls = (index: number, id: string, args: readonly string[]): AIMessageChunk[] => [
      new AIMessageChunk({ content: "", tool_call_chunks: [{ index, id, name: "order", args: "" }] }),
      ...args.map((piece) => new AIMessageChunk({ content: "", tool_call_chunks: [{ index, args: piece }] })),
    ];
    const says = type === "tool" ? `Done: ${text}` : `You said: ${text}`;
    const chunks =
      type === "human" && text.startsWith("order")
        ? [
            new AIMessageChunk({ content: "I " }),
            new AIMessageChunk({ content: "order." }),
            ...text
              .split(" ")
              .slice(1)
              .flatMap((article, n) => calls(n, `call-${article}`, ['{"article":', `"${article}"}`])),
          ]
        : [...says.matchAll(/\S+\s*/g)].map(([word]) => new AIMessageChunk({ content: word }));
    for (const message of chunks) {
      const chunk = new ChatGenerationChunk({ text: message.text, message });
      yield chunk;
      await run?.handleLLMNewToken(chunk.text, undefined, undefined, undefined, undefined, { chunk });
    }
  }
}

export interface ShopParts {
  readonly checkpointer: BaseCheckpointSaver;
  readonly model?: ShopModel;
  /** Awaited by the tool, before it asks. */
  readonly before?: () => Promise<void>;
}

/** Orders what it is asked for, once somebody says yes. */
export function shopGraph({ checkpointer, model = new ShopModel({}), before }: ShopParts) {
  const order = async ({ messages }: State, config: LangGraphRunnableConfig): Promise<Partial<State>> => {
    const { tool_calls: calls = [] } = messages.at(-1) as AIMessage; // the edge leads here for nothing else
    const answers: ToolMessage[] = [];
    await before?.();
    for (const { id = "", args } of calls) {
      const article = String(args["article"]);
      const event: Event = { type: EventType.CUSTOM, name: "asking", value: article };
      config.writer?.(event);
      const answer = ask<{ approved: boolean }>(config, `Order a ${article}?`);
      const content = answer?.approved === true ? `ordered ${article}` : `no ${article}`;
      answers.push(new ToolMessage({ tool_call_id: id, content }));
    }
    return { messages: answers };
  };
  return new StateGraph(MessagesAnnotation)
    .addNode("model", async ({ messages }, config) => ({ messages: [await model.invoke(messages, config)] }))
    .addNode("order", order)
    .addEdge(START, "model")
    .addConditionalEdges(
      "model",
      ({ messages }) => ((messages.at(-1) as AIMessage).tool_calls?.length ? "order" : END),
      ["order", END],
    )
    .addEdge("order", "model")
    .compile({ checkpointer });
}
