import type {
  LanguageModelV4Content,
  LanguageModelV4GenerateResult,
  LanguageModelV4StreamPart,
} from "@ai-sdk/provider";

type Block = Extract<LanguageModelV4Content, { readonly type: "text" | "reasoning" }>;

/** What a stream says, as a whole. Errors: what the stream ends with, or says. */
export async function generated(
  stream: ReadableStream<LanguageModelV4StreamPart>,
): Promise<LanguageModelV4GenerateResult> {
  const content: LanguageModelV4Content[] = [];
  /** Open blocks, by their kind and id. */
  const open = new Map<string, Block>();
  let result: Pick<LanguageModelV4GenerateResult, "finishReason" | "usage" | "providerMetadata"> | undefined;
  let response: LanguageModelV4GenerateResult["response"];
  let warnings: LanguageModelV4GenerateResult["warnings"] = [];
  const reader = stream.getReader();
  try {
    for (;;) {
      const { done, value: part } = await reader.read();
      if (done) break;
      switch (part.type) {
        case "stream-start":
          ({ warnings } = part);
          break;
        case "response-metadata":
          response = { ...response, ...part };
          break;
        case "text-start":
        case "reasoning-start": {
          const type = part.type === "text-start" ? "text" : "reasoning";
          const block: Block = { type, text: "" };
          content.push(block);
          open.set(`${type} ${part.id}`, block);
          break;
        }
        case "text-delta":
        case "reasoning-delta": {
          const block = open.get(`${part.type === "text-delta" ? "text" : "reasoning"} ${part.id}`);
          if (block !== undefined) block.text += part.delta;
          break;
        }
        case "tool-call":
        case "tool-result":
        case "tool-approval-request":
        case "file":
        case "reasoning-file":
        case "source":
        case "custom":
          content.push(part);
          break;
        case "finish": {
          const { type: _type, ...finish } = part;
          result = finish;
          break;
        }
        case "error":
          throw part.error;
        default:
      }
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
  if (result === undefined) throw new Error("The model's stream ended without a finish");
  return { ...result, content, warnings, ...(response !== undefined && { response }) };
}
