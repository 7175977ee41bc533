/**
 * Which Host and Origin a call may carry. In local development only loopback names reach the service, so that a web page whose name
 * was pointed at this machine (DNS rebinding) gets nothing; a write with the session's cookie must come from the dashboard itself.
 */
import { Refusal } from "../ground/refusal.ts";

const LOOPBACK_HOST = /^(127\.0\.0\.1|localhost|\[::1\])(?::(\d{1,5}))?$/i;

/** Refuses with `wrong_origin` a Host that is not this machine's loopback with the port that is listened on. */
export function requireLocalHost(host: string | null, port: number): void {
  const match = LOOPBACK_HOST.exec(host ?? "");
  if (match !== null && Number(match[2] ?? 80) === port) return;
  throw new Refusal(
    "wrong_origin",
    `In local development the service answers only to 127.0.0.1, localhost and [::1] on port ${port}: open it under one of these.`,
  );
}

/**
 * Refuses with `wrong_origin` unless the Origin header is the dashboard's own: the configured base URL, else the Host that was
 * called over plain http.
 */
export function requireSameOrigin(headers: Headers, baseUrl: string | null): void {
  const own = baseUrl === null ? `http://${headers.get("host") ?? ""}` : new URL(baseUrl).origin;
  if (headers.get("origin") === own) return;
  throw new Refusal(
    "wrong_origin",
    "A change made with the dashboard's session must come from the dashboard's own page: open the dashboard at its own address.",
  );
}
