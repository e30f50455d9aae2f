/** The syntax of methods and header names. https://www.rfc-editor.org/rfc/rfc9110#name-tokens */
export const isToken = (given: unknown): given is string =>
  typeof given === "string" && /^[\w!#$%&'*+.^`|~-]+$/.test(given);
