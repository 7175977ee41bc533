/**
 * Which Host and Origin a call may carry. In local development only loopback names reach the service, so that a web page whose name
 * was pointed at this machine (DNS rebinding) gets nothing; a write with the session's cookie must come from the dashboard itself.
 */
import type { ServiceConfig } from "../config.ts";
import { Refusal } from "../ground/refusal.ts";
import { addressOf } from "./address.ts";

const LOOPBACK_HOST = /^(127\.0\.0\.1|localhost|\[::1\])(?::(\d{1,5}))?$/i;

/**
 * Refuses with `wrong_origin` a Host that is not this machine's loopback with the port that is listened on. The host of a configured
 * base URL (a tunnel that brings providers' calls here) reaches the receivers alone: their calls are signed.
 */
export function requireLocalHost(request: Request, port: number, baseUrl: string | null): void {
  const host = request.headers.get("host") ?? "";
  const match = LOOPBACK_HOST.exec(host);
  if (match !== null && Number(match[2] ?? 80) === port) return;
  const isTunnel = baseUrl !== null && new URL(baseUrl).host === host.toLowerCase();
  if (isTunnel && addressOf(request).pathname.startsWith("/hooks/")) return;
  throw new Refusal(
    "wrong_origin",
    `In local development the service answers only to 127.0.0.1, localhost and [::1] on port ${port}: open it under one of these.`,
  );
}

/**
 * Refuses with `wrong_origin` unless the Origin header is the dashboard's own: the configured base URL, else (and always in local
 * development) the Host that was called over plain http.
 */
export function requireSameOrigin(config: Pick<ServiceConfig, "mode" | "baseUrl">, headers: Headers): void {
  const named = config.mode === "server" ? config.baseUrl : null;
  const own = named === null ? `http://${headers.get("host") ?? ""}` : new URL(named).origin;
  if (headers.get("origin") === own) return;
  throw new Refusal(
    "wrong_origin",
    "A change made with the dashboard's session must come from the dashboard's own page: open the dashboard at its own address.",
  );
}
