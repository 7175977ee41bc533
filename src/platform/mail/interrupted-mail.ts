/**
 * Ends mails whose result was never written, because the process ended or the store could not be written. A mail that certainly was not sent is
 * failed and may be sent again. A mail that may have been sent is unknown and is never sent again automatically; owners are alerted.
 */

import { formatMailFailure } from "../../base/code/mail-code.ts";
import { HOUR_MS } from "../../base/limit.ts";
import type { Reader, Writer } from "../../store/port.ts";
import type { RowOf } from "../../store/table.ts";
import { raiseAlert } from "../audit/alert.ts";
import { EMAIL } from "./email.ts";

/** The most ids that one alert names. */
const MAX_NAMED = 20;

export const MAY_HAVE_BEEN_SENT =
  "It is unknown whether this mail left, so it counts as sent and is not sent again automatically.";

const INTERRUPTED = EMAIL.pick("environmentId", "kind", "relayName", "createdAt");
type Interrupted = RowOf<typeof INTERRUPTED>;

/**
 * Limits the mails to end if other nodes send too: mails of one environment's relays after its lease ended, or mails of no relay that began
 * before a moment.
 */
type InterruptedScope = { environmentId: number } | { before: number };

/**
 * Ends every mail without a result. At the start no other mail is in progress, so all belong to a dead process. The event's next attempt sends
 * its mail again, and the next alert mail includes the alerts; a sign-in code must be requested again. Returns how many there were of each.
 */
export async function endInterruptedMails(
  tx: Writer,
  nowMs: number,
  scope: InterruptedScope | null = null,
): Promise<{ unknown: number; notLeft: number }> {
  const which =
    scope === null
      ? ""
      : "before" in scope
        ? "AND relay_name IS NULL AND created_at < $before"
        : "AND relay_name IS NOT NULL AND environment_id = $environmentId";
  const unknown = await tx.all<Interrupted>(
    `UPDATE email SET state = 'unknown', reason = 'stopped', message = $message, finished_at = $nowMs
     WHERE state = 'intended' AND left_at IS NOT NULL ${which} RETURNING ${INTERRUPTED.columns}`,
    { ...scope, message: MAY_HAVE_BEEN_SENT, nowMs },
  );
  const notLeft = await tx.all<Interrupted>(
    `UPDATE email SET state = 'failed', reason = 'stopped', message = $message, finished_at = $nowMs
     WHERE state = 'intended' ${which} RETURNING ${INTERRUPTED.columns}`,
    { ...scope, message: formatMailFailure("stopped"), nowMs },
  );
  for (const mail of notLeft) if (mail.kind === "alert") await unmarkAlerts(tx, mail);
  const relays = new Map(unknown.map((mail) => [`${mail.environmentId} ${mail.relayName}`, mail]));
  for (const { environmentId, relayName } of relays.values()) {
    const count = unknown.filter(
      (mail) => mail.environmentId === environmentId && mail.relayName === relayName,
    );
    await alertUnknownMail(tx, { environmentId, relayName, count: count.length, nowMs });
  }
  return { unknown: unknown.length, notLeft: notLeft.length };
}

/** Returns whether a mail of no relay that began before the moment has no result. */
export async function hasInterruptedMails(tx: Reader, before: number): Promise<boolean> {
  const sql =
    "SELECT 1 AS found FROM email WHERE state = 'intended' AND relay_name IS NULL AND created_at < ?1 LIMIT 1";
  return (await tx.get(sql, before)) !== null;
}

/** Raises the alert `mail_unknown` in the transaction that ends the mails. It says how many mails of a relay are unknown, and which. */
export async function alertUnknownMail(
  tx: Writer,
  {
    environmentId,
    relayName,
    count,
    nowMs,
  }: { environmentId: number; relayName: string | null; count: number; nowMs: number },
): Promise<void> {
  if (relayName === null) return;
  const recent = await EMAIL.pick("id").all(
    tx,
    `WHERE state = 'unknown' AND environment_id = $environmentId AND relay_name = $relayName AND finished_at > $after
     ORDER BY seq DESC LIMIT $most`,
    { environmentId, relayName, after: nowMs - HOUR_MS, most: MAX_NAMED + 1 },
  );
  const ids = recent.slice(0, MAX_NAMED).map(({ id }) => id);
  const more = recent.length > MAX_NAMED ? " and older ones" : "";
  await raiseAlert(tx, {
    environmentId,
    code: "mail_unknown",
    target: `relay:${relayName}`,
    message: `It is unknown whether mail of ${relayName} left: ${ids.join(", ")}${more}. Relay does not send it again automatically. If a mail did not arrive, send it again on the dashboard's Mail page or with relay emails resend.`,
    count,
    nowMs,
  });
}

/** Marks the alerts of an unsent mail as not mailed, unless another owner got or may have got them. */
async function unmarkAlerts(tx: Writer, { environmentId, createdAt }: Interrupted): Promise<void> {
  await tx.run(
    `UPDATE alert SET mailed_at = NULL WHERE environment_id = ?1 AND mailed_at = ?2 AND NOT EXISTS (
       SELECT 1 FROM email WHERE environment_id = ?1 AND created_at = ?2 AND kind = 'alert' AND state IN ('sent', 'unknown'))`,
    environmentId,
    createdAt,
  );
}
