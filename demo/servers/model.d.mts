import type { IncomingMessage, Server, ServerResponse } from "node:http";

interface Turn {
  readonly role: string;
  readonly content?: unknown;
  readonly tool_calls?: readonly unknown[];
}

/** The name of the one model. */
export const MODEL: string;

export function nextTurn(request: {
  readonly messages: readonly Turn[];
  readonly tools?: readonly { readonly function: { readonly name: string } }[];
  readonly tool_choice?: unknown;
}): { readonly calls: readonly { readonly name: string; readonly arguments: string }[] } | { readonly text: string };

export function respond(request: IncomingMessage, response: ServerResponse): Promise<void>;

export function listen(port?: number): Promise<Server>;
