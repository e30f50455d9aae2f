import type { Answer } from "../request.js";

/**
 * The answer with this response. The after-middleware is shown another one: of a copy, what it leaves unread would be kept
 * in memory.
 */
export function answerOf(respond: () => Response, threadId?: string): Answer<Response> {
  const ended = Promise.resolve(threadId === undefined ? {} : { threadId });
  return { value: respond(), response: respond, ended };
}
