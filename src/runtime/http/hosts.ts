import { RunnerError } from "../../run/errors.js";
import { json } from "./responses.js";

/**
 * Host names that requests may be sent to: `api.example.com`, with a port only that port (a request that names none is
 * sent to that of its protocol); `.example.com` is every name below it; `*` is all. Letters of either case; IPv6 addresses
 * with or without brackets.
 */
export type AllowedHosts = readonly string[];

interface Named {
  readonly name: string;
  readonly port: string;
}

/** A `Host` header or an entry of the list; undefined for what is none. https://www.rfc-editor.org/rfc/rfc9110#name-host-and-authority */
function parse(host: string): Named | undefined {
  const text = host.trim().toLowerCase();
  // An IPv6 address without brackets has no port.
  const [, name, port = ""] =
    /^[0-9a-f:.]+$/.test(text) && text.split(":").length > 2
      ? ["", text]
      : (/^(\[[0-9a-f:.]+\]|[^\s:/?#@[\]\\]+)(?::(\d{0,5}))?$/.exec(text) ?? []);
  if (name === undefined) return undefined;
  return { name: name.replace(/^\[(.*)\]$/, "$1").replace(/\.$/, ""), port: port && String(Number(port)) };
}

/** Of what a request is sent to that names no port. */
const DEFAULT_PORTS: Readonly<Record<string, string>> = { "http:": "80", "https:": "443" };

/** Names that only this machine has. https://www.rfc-editor.org/rfc/rfc6761#section-6.3 */
export const isLoopback = (name: string): boolean =>
  name === "localhost" ||
  name.endsWith(".localhost") ||
  /^127(?:\.\d{1,3}){3}$/.test(name) ||
  /^(?:0{0,4}:){2,7}0{0,3}1$/.test(name) ||
  /^::ffff:127(?:\.\d{1,3}){3}$/.test(name);

/**
 * @returns whether a request with this `Host`, to a URL of this protocol (`http:`), may be answered
 * @throws RunnerError `invalid-input` for an entry that is no host
 */
export function hostCheck(allowed: AllowedHosts): (host: string | undefined, protocol: string) => boolean {
  if (!Array.isArray(allowed)) throw invalid("allowedHosts must be a list of host names");
  const rules = allowed.map((entry: unknown) => {
    const rule = typeof entry === "string" ? parse(entry) : undefined;
    if (rule === undefined) throw invalid("allowedHosts must hold host names, without a protocol or a path");
    // No other pattern is read as one: it would let nobody in.
    if (rule.name.includes("*") && entry !== "*") throw invalid(`allowedHosts has "*" by itself, or ".example.com"`);
    return rule;
  });
  if (rules.some(({ name }) => name === "*")) return () => true;
  return (host, protocol) => {
    const asked = parse(host ?? "");
    const askedPort = asked?.port || DEFAULT_PORTS[protocol];
    return (
      asked !== undefined &&
      rules.some(
        ({ name, port }) =>
          (port === "" || port === askedPort) &&
          (name === asked.name || (name.startsWith(".") && asked.name.endsWith(name))),
      )
    );
  };
}

/** The default of a server that listens on a loopback address: a page whose name was pointed at it has another name. */
export function isLoopbackHost(host: string | undefined): boolean {
  // Every browser says where it sends a request to.
  if (host === undefined) return true;
  const asked = parse(host);
  return asked !== undefined && isLoopback(asked.name);
}

const invalid = (message: string): RunnerError =>
  new RunnerError("invalid-input", { field: "allowedHosts" }, { message });

export function hostRefused(): Response {
  return json({ error: "Forbidden", message: "Requests to this host name are not answered: see allowedHosts" }, 403);
}
