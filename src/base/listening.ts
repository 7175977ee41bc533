/** What the address that a server listens on is called by whoever calls it: nobody can call "every address of this machine". */
import { hostname } from "node:os";

const EVERY_IPV4 = "0.0.0.0";
const EVERY_IPV6 = "::";

/** From the machine itself. */
export function nearHost(host: string): string {
  if (host === EVERY_IPV4) return "127.0.0.1";
  return host === EVERY_IPV6 ? "::1" : host;
}

/** From another machine. */
export function farHost(host: string): string {
  return host === EVERY_IPV4 || host === EVERY_IPV6 ? hostname() : host;
}

export function originOf(host: string, port: number): string {
  return `http://${host.includes(":") ? `[${host}]` : host}:${port}`;
}
