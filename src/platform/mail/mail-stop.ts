/**
 * Stops mail of kind `event` to a person, by the one-click URL in each such mail or by an owner. Mail of kind `account` cannot be stopped. The
 * URL holds the person's id with a keyed digest, so that it cannot be guessed. Source: RFC 2369 (List-Unsubscribe), RFC 8058 (one click).
 */
import { timingSafeEqual } from "node:crypto";
import { type Static, Type } from "typebox";
import { toIso } from "../../base/clock.ts";
import { makeNameKey, makePage, type Page, type PageRequest, parseNameKey } from "../../base/page.ts";
import { time } from "../../base/schema.ts";
import type { Reader, Writer } from "../../store/port.ts";
import { defineTable, integer, type RowOf, text } from "../../store/table.ts";
import { type Change, writeAudit } from "../audit/audit.ts";
import type { Sealer } from "../secret/seal.ts";

const MAIL_STOP = defineTable({
  name: "mail_stop",
  key: ["personId", "environmentId"],
  columns: { personId: text(), environmentId: integer(), stoppedAt: integer() },
});

export type MailStop = Pick<RowOf<typeof MAIL_STOP>, "environmentId" | "personId">;

export const mailStopView = Type.Object({ person: Type.String(), email: Type.String(), stoppedAt: time });
export type MailStopView = Static<typeof mailStopView>;

/** The path of the one-click URL. */
export const MAIL_STOP_PATH = "/mail/stop/";
const TOKEN = /^(\d{1,15})\.(per_[0-9a-z]{1,64})\.([\w-]{43})$/;

/** Builds the URL that stops a person's event mail. Returns null without a public https origin, which one click requires. */
export function makeStopUrl(sealer: Sealer, baseUrl: string, stop: MailStop): string | null {
  if (!baseUrl.startsWith("https://")) return null;
  const digest = Buffer.from(digestStop(sealer, stop)).toString("base64url");
  return `${baseUrl}${MAIL_STOP_PATH}${stop.environmentId}.${stop.personId}.${digest}`;
}

/** Reads whose mail a token stops. Returns null for a forged or malformed token. */
export function readStopToken(sealer: Sealer, token: string): MailStop | null {
  const [, environmentId = "", personId = "", digest = ""] = TOKEN.exec(token) ?? [];
  const stop = { environmentId: Number(environmentId), personId };
  const given = Buffer.from(digest, "base64url");
  const right = digestStop(sealer, stop);
  return given.length === right.length && timingSafeEqual(given, right) ? stop : null;
}

/** Finds when the person stopped event mail, in milliseconds since the epoch; null: they receive it. */
export async function findMailStop(
  tx: Reader,
  { environmentId, personId }: MailStop,
): Promise<number | null> {
  return (await MAIL_STOP.find(tx, { personId, environmentId }))?.stoppedAt ?? null;
}

/** Stops the person's event mail or allows it again. Audited if it changes anything. */
export async function setMailStop(
  tx: Writer,
  change: Change,
  { personId, stopped }: { personId: string; stopped: boolean },
): Promise<void> {
  const row = { personId, environmentId: change.environmentId, stoppedAt: change.nowMs };
  const changed = stopped
    ? await MAIL_STOP.insert(tx, row, "ON CONFLICT (person_id) DO NOTHING")
    : await MAIL_STOP.delete(tx, row);
  if (changed === 0) return;
  await writeAudit(tx, {
    ...change,
    action: stopped ? "person.mail_stopped" : "person.mail_allowed",
    target: `person:${personId}`,
  });
}

/** Lists people who stopped event mail, the newest first. */
export async function listMailStops(
  tx: Reader,
  environmentId: number,
  request: PageRequest,
): Promise<Page<MailStopView>> {
  const { createdAt: at, name: personId } = parseNameKey(request.after);
  const rows = await tx.all<{ personId: string; email: string; at: number }>(
    `SELECT person_id AS personId, person.email, stopped_at AS at
     FROM mail_stop JOIN person ON person.id = person_id AND person.status <> 'erased'
     WHERE mail_stop.environment_id = $environmentId
       AND ($at IS NULL OR (stopped_at, person_id) < ($at, $personId))
     ORDER BY stopped_at DESC, person_id DESC LIMIT $limit`,
    { environmentId, at, personId, limit: request.limit + 1 },
  );
  return makePage(
    rows,
    request,
    ({ at: createdAt, personId: name }) => makeNameKey({ createdAt, name }),
    (row) => ({ person: row.personId, email: row.email, stoppedAt: toIso(row.at) }),
  );
}

function digestStop(sealer: Sealer, { environmentId, personId }: MailStop): Uint8Array {
  return sealer.digest(`mail stop\n${environmentId}\n${personId}`);
}
