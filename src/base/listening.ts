/** Converts the address on which a server listens to one for clients. A client cannot connect to "every address of this machine". */
import { hostname } from "node:os";

const EVERY_IPV4 = "0.0.0.0";
const EVERY_IPV6 = "::";

/** Returns the host for a client on this machine. */
export function nearHost(host: string): string {
  if (host === EVERY_IPV4) return "127.0.0.1";
  return host === EVERY_IPV6 ? "::1" : host;
}

/** Returns the host for a client on another machine. */
export function farHost(host: string): string {
  return host === EVERY_IPV4 || host === EVERY_IPV6 ? hostname() : host;
}

export function originOf(host: string, port: number): string {
  return `http://${host.includes(":") ? `[${host}]` : host}:${port}`;
}
