/**
 * The session's cookie: HttpOnly, SameSite=Strict, Secure where the service is reached over https. In local development its name
 * holds the port, as browsers share cookies between the ports of one host.
 */
import type { HttpRooms } from "./rooms.ts";

/** The session token a request carries, or null. */
export function readSessionCookie(rooms: HttpRooms, request: Request): string | null {
  const name = cookieName(rooms);
  for (const part of (request.headers.get("cookie") ?? "").split(";")) {
    const equals = part.indexOf("=");
    if (equals > 0 && part.slice(0, equals).trim() === name) return part.slice(equals + 1).trim();
  }
  return null;
}

/** The Set-Cookie value that keeps the session until `expiresAtMs`. */
export function writeSessionCookie(rooms: HttpRooms, token: string, expiresAtMs: number): string {
  const seconds = Math.max(0, Math.floor((expiresAtMs - rooms.clock.now()) / 1000));
  const secure = isHttps(rooms) ? "; Secure" : "";
  return `${cookieName(rooms)}=${token}; Path=/; Max-Age=${seconds}; HttpOnly; SameSite=Strict${secure}`;
}

/** The Set-Cookie value that forgets the session. */
export function clearSessionCookie(rooms: HttpRooms): string {
  return writeSessionCookie(rooms, "", rooms.clock.now());
}

function cookieName(rooms: HttpRooms): string {
  if (rooms.config.mode === "local") return `relay_session_${new URL(rooms.baseUrl()).port || "80"}`;
  return isHttps(rooms) ? "__Host-relay_session" : "relay_session";
}

function isHttps(rooms: HttpRooms): boolean {
  return rooms.config.mode === "server" && rooms.baseUrl().startsWith("https://");
}
