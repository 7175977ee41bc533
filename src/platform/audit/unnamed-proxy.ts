/**
 * The problem `proxy_unnamed`: requests arrive through a proxy that the configuration does not name, so all callers behind it count as one. It
 * concerns the whole server, so every environment shows it until the server starts with a proxy named.
 */

import type { Writer } from "../../store/port.ts";
import { listEnvironments } from "../account/environment.ts";
import { clearProblem, listOpenProblems, raiseProblem } from "./problem.ts";

export const UNNAMED_PROXY = "proxy_unnamed";
const KIND = "proxy:";

/** Formats the message of the log and the problem. */
export function formatUnnamedProxy(proxy: string): string {
  return `Requests arrive through the proxy ${proxy}, which is not trusted, so all callers behind it share one caller's limits. Start the server with --trusted-proxy ${proxy} (RELAY_TRUSTED_PROXY) if the proxy is yours.`;
}

/** Reads the proxy's address from the problem's target. */
export function readProxyTarget(target: string): string {
  return target.slice(KIND.length);
}

export async function raiseUnnamedProxy(tx: Writer, proxy: string, nowMs: number): Promise<void> {
  const problem = {
    code: UNNAMED_PROXY,
    target: `${KIND}${proxy}`,
    message: formatUnnamedProxy(proxy),
    nowMs,
  } as const;
  for (const { id } of await listEnvironments(tx, null)) {
    await raiseProblem(tx, { ...problem, environmentId: id });
  }
}

/** Clears the problem once a proxy is named. */
export async function clearUnnamedProxy(tx: Writer, nowMs: number): Promise<void> {
  for (const problem of await listOpenProblems(tx, [UNNAMED_PROXY])) {
    await clearProblem(tx, { ...problem, nowMs });
  }
}
