import { invalidInput, RunnerError } from "../../run/errors.js";
import { json } from "./responses.js";

/**
 * Host names that requests may be sent to: `api.example.com`, with a port to allow only that port (a request without
 * one uses its protocol's default port); `.example.com` allows every name below it; `*` allows all. Case is ignored;
 * IPv6 addresses have brackets or not.
 */
export type AllowedHosts = readonly string[];

interface Named {
  readonly name: string;
  readonly port: string;
}

/**
 * Parses a `Host` header or an entry of the list; undefined if it is not a host.
 * https://www.rfc-editor.org/rfc/rfc9110#name-host-and-authority
 */
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

/** By protocol. */
const DEFAULT_PORTS: Readonly<Record<string, string>> = { "http:": "80", "https:": "443" };

/** Names and addresses of this machine. https://www.rfc-editor.org/rfc/rfc6761#section-6.3 */
export const isLoopback = (name: string): boolean =>
  name === "localhost" ||
  name.endsWith(".localhost") ||
  /^127(?:\.\d{1,3}){3}$/.test(name) ||
  /^(?:0{0,4}:){2,7}0{0,3}1$/.test(name) ||
  /^::ffff:127(?:\.\d{1,3}){3}$/.test(name);

/**
 * @returns whether a request with this `Host`, to a URL of this protocol (`http:`), may be answered
 * @throws RunnerError `invalid-input` for an entry that is not a host
 */
export function hostCheck(allowed: AllowedHosts): (host: string | undefined, protocol: string) => boolean {
  if (!Array.isArray(allowed)) throw invalid("allowedHosts must be a list of host names");
  const rules = allowed.map((entry: unknown) => {
    const rule = typeof entry === "string" ? parse(entry) : undefined;
    if (rule === undefined) throw invalid("allowedHosts must hold host names, without a protocol or a path");
    // Other wildcard patterns would silently match nothing.
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

/** The default on a loopback address. A page that rebound its DNS name to this address has another `Host`. */
export function isLoopbackHost(host: string | undefined): boolean {
  // Every browser sends `Host`.
  if (host === undefined) return true;
  const asked = parse(host);
  return asked !== undefined && isLoopback(asked.name);
}

const invalid = (message: string): RunnerError => invalidInput("allowedHosts", message);

export function hostRefused(): Response {
  return json({ error: "Forbidden", message: "Requests to this host name are not answered: see allowedHosts" }, 403);
}
