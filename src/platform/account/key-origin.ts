/**
 * Web origins of app keys: what an origin is, which origins a key may name, and which pages may use a key. Source: the specification's
 * "Authentication", point 5.
 */
import { Refusal, type Warning } from "../../base/refusal.ts";
import type { EnvironmentName } from "./environment.ts";

/** The properties of a key that decide which pages may use it. */
export interface KeyOrigins {
  kind: "secret" | "app";
  environmentName: EnvironmentName;
  origins: readonly string[];
}

/** Reports whether a page of this origin may use the key. No page may use a secret key. */
export function isKeyAllowedFrom(key: KeyOrigins, origin: string): boolean {
  return key.kind === "app" && isAllowedOrigin(key.environmentName, key.origins, origin);
}

const MAX_ORIGINS = 20;
const LOOPBACK = /^(localhost|.+\.localhost|127\.0\.0\.1|\[::1\])$/;

/** Returns the origins as a browser sends them. Throws `invalid_input` and names the value that is not an origin. */
export function checkOrigins(
  kind: KeyOrigins["kind"],
  environment: EnvironmentName,
  origins: readonly string[],
): string[] {
  if (kind === "secret" && origins.length > 0) {
    throw new Refusal("invalid_input", "origins is only for app keys: a secret key works only from servers.");
  }
  if (origins.length > MAX_ORIGINS) {
    throw new Refusal("invalid_input", `origins is too long: name at most ${MAX_ORIGINS}.`);
  }
  if (kind === "app" && environment === "production" && origins.length === 0) {
    throw new Refusal(
      "invalid_input",
      "origins is missing: a live app key works only from the origins it names, such as https://shop.example.com.",
    );
  }
  return [...new Set(origins.map(readOrigin))];
}

/** Returns one warning for each origin with a `*`, because origins have no wildcards. */
export function listOriginWarnings(origins: readonly string[]): Warning[] {
  return origins.flatMap((origin, index): Warning[] => {
    if (!origin.includes("*")) return [];
    const message = `origins holds ${origin}, which is not an origin of a page: wildcards are not supported, so name each origin as a browser sends it, such as https://shop.example.com.`;
    return [{ code: "origin_of_no_page", field: `origins.${index}`, message }];
  });
}

/** Reports whether a page of `origin`, as the browser sends it, may use a key that names `origins`. */
function isAllowedOrigin(environment: EnvironmentName, origins: readonly string[], origin: string): boolean {
  if (origins.includes(origin)) return true;
  if (environment === "production" || !URL.canParse(origin)) return false;
  const url = new URL(origin);
  if (url.origin !== origin) return false;
  return url.protocol === "https:" || (url.protocol === "http:" && LOOPBACK.test(url.hostname));
}

function readOrigin(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : null;
  const bare = url !== null && text.replace(/\/$/, "").toLowerCase() === url.origin;
  if (url === null || !bare || url.protocol !== "https:") {
    throw new Refusal(
      "invalid_input",
      "origins contains a value that is not an https origin: write each as https://host, with a port if it has one, and no path.",
    );
  }
  return url.origin;
}
