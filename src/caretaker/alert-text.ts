/** The mail that tells an owner of alerts: all that wait in one, each with its count, first and last. It decides only the words. */
import type { Environment } from "../account/environment.ts";
import { toIso } from "../ground/clock.ts";
import { makeSubject, makeText } from "../mail/mailer.ts";
import type { AlertRow } from "../watch/alert.ts";

/** An alert, and the burst of the same that ended shortly before it, whose last count no mail told. */
export interface ToldAlert {
  alert: AlertRow;
  before: AlertRow | null;
}

/** `pageUrl`: where the dashboard shows them. */
export function writeAlertMail(
  place: { appName: string; environment: Pick<Environment, "name">; pageUrl: string },
  told: readonly ToldAlert[],
): { subject: string; text: string } {
  const where = `${place.appName} (${place.environment.name})`;
  const [only] = told;
  const what =
    told.length === 1 && only !== undefined
      ? `${only.alert.code} of ${nameOf(only.alert)}${times(only.alert.count)}`
      : `${told.length} alerts`;
  const parts = [
    ...told.map(tellAlert),
    `All of them: ${place.pageUrl}\nWhich alerts are raised, and whether they are mailed, is switched in the environment's settings.`,
  ];
  return { subject: makeSubject(`${where}: ${what}`), text: makeText(`${parts.join("\n\n")}\n`) };
}

function tellAlert({ alert, before }: ToldAlert): string {
  const { code, message, count, at, lastAt } = alert;
  const when = count === 1 ? toIso(at) : `${count} times, first ${toIso(at)}, last ${toIso(lastAt)}`;
  const lines = [`${nameOf(alert)} · ${code} · ${when}`, message];
  if (before !== null && before.count > 1)
    lines.push(
      `The burst before it, from ${toIso(before.at)} to ${toIso(before.lastAt)}, came to ${before.count}.`,
    );
  return lines.join("\n");
}

function nameOf({ target }: AlertRow): string {
  return target.slice(target.indexOf(":") + 1);
}

function times(count: number): string {
  return count === 1 ? "" : `, ${count} times`;
}
