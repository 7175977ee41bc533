/**
 * How a product or plan is sold: a payment link, or a relay bound by NAME, so that deleting or renaming the relay stops fulfilment until
 * one of that name exists again. It never reads what the relay does.
 * Source: the specification's "Relay-sold products and plans".
 */
import { isJsonObject, parseJson, writeJson } from "../ground/json.ts";
import { Refusal } from "../ground/refusal.ts";
import { RELAY_NAME } from "../ground/shape.ts";
import type { Reader } from "../store/port.ts";

export type SoldThrough = { kind: "payment_link"; url: string } | { kind: "relay"; relay: string };

const MAX_LINK_CHARS = 2_000;

/** Whether it is sold by exactly this relay. */
export function soldByRelay(soldThrough: SoldThrough | null, relay: string): boolean {
  return soldThrough?.kind === "relay" && soldThrough.relay === relay;
}

/** The stored text of a setting; null for none. */
export function writeSoldThrough(soldThrough: SoldThrough | null): string | null {
  return soldThrough === null ? null : writeJson(soldThrough);
}

/** The setting from its stored text. */
export function readSoldThrough(text: string | null): SoldThrough | null {
  return text === null ? null : parseSoldThrough(parseJson(text));
}

/** A setting from what a person wrote; undefined and null are none. Refuses with `invalid_input`. */
export function parseSoldThrough(value: unknown): SoldThrough | null {
  if (value === undefined || value === null) return null;
  if (isJsonObject(value)) {
    const names = Object.keys(value).sort().join();
    if (names === "kind,url" && value.kind === "payment_link") return parseLink(value.url);
    if (names === "kind,relay" && value.kind === "relay") return parseRelay(value.relay);
  }
  throw new Refusal(
    "invalid_input",
    '`soldThrough` is not a way of selling: write { "kind": "payment_link", "url": … }, { "kind": "relay", "relay": … }, or null.',
  );
}

/** Refuses with `relay_missing` a setting that names a relay this environment does not have. */
export async function requireSellingRelay(
  tx: Reader,
  environmentId: number,
  soldThrough: SoldThrough | null,
): Promise<void> {
  if (soldThrough?.kind !== "relay") return;
  const sql = "SELECT 1 AS found FROM relay WHERE environment_id = ?1 AND name = ?2";
  if ((await tx.get(sql, environmentId, soldThrough.relay)) !== null) return;
  throw new Refusal(
    "relay_missing",
    `\`soldThrough.relay\` names the relay ${soldThrough.relay}, which does not exist in this environment: create it first, or name one that exists.`,
  );
}

function parseRelay(relay: unknown): SoldThrough {
  if (typeof relay === "string" && RELAY_NAME.test(relay)) return { kind: "relay", relay };
  throw new Refusal(
    "invalid_input",
    "`soldThrough.relay` is not the name of a relay: write 2 to 63 lowercase letters, digits and hyphens, starting with a letter.",
  );
}

function parseLink(url: unknown): SoldThrough {
  if (typeof url === "string" && url.length <= MAX_LINK_CHARS) {
    const link = URL.parse(url);
    if (link?.protocol === "https:" && link.username === "" && link.password === "") {
      return { kind: "payment_link", url: link.href };
    }
  }
  throw new Refusal(
    "invalid_input",
    `\`soldThrough.url\` is not a payment link: write an https address without credentials, at most ${MAX_LINK_CHARS} characters.`,
  );
}
