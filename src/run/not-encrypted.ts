import { invalidInput, type RunnerError } from "./errors.js";

export const notEncrypted = (): RunnerError =>
  invalidInput("encryption", "Nothing is encrypted here: give encryption to serveRuntime, {} where tabs bring the key");
