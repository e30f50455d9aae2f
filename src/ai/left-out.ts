/** In place of a file that a model cannot be given: a refusal would fail its thread in each later run. */
export const leftOut = (type: string): string =>
  `[A part of this message, of type ${type}, cannot be read and was left out]`;
