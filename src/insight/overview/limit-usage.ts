/** Measures how much of its limits an environment uses. Limits of a minute are left out, because they count in memory and begin again at once. */
import { type Static, Type } from "typebox";
import type { RaisableLimits } from "../../base/limit.ts";
import { LIMIT_WORDS } from "../../base/limit-text.ts";
import { oneOf } from "../../base/schema.ts";
import type { Environment } from "../../platform/account/environment.ts";
import { countRelayEmails } from "../../platform/mail/email.ts";
import { countRelays } from "../../rules/relay/relay.ts";
import { countNewPeople } from "../../shop/people/person-invite.ts";
import { findStoredBytes } from "../../shop/records/record-budget.ts";
import type { Reader } from "../../store/port.ts";

const MEASURED = [
  "relaysPerEnvironment",
  "invitesPerDay",
  "signupsPerDay",
  "emailsPerHour",
  "storedPerEnvironmentMb",
] as const;

export const limitUsageView = Type.Object({
  name: oneOf(MEASURED),
  /** The variable that raises the limit. */
  variable: Type.String(),
  /** The thing that the limit counts, and its scope. */
  counts: Type.String(),
  /** The effect above the limit. */
  hit: Type.String(),
  used: Type.Integer(),
  limit: Type.Integer(),
});
export type LimitUsage = Static<typeof limitUsageView>;

const MB = 1024 * 1024;

/** Measures each limit in the order of the settings page. Mails count for the whole app. */
export async function measureLimits(
  tx: Reader,
  { id, appId }: Pick<Environment, "id" | "appId">,
  limits: RaisableLimits,
  nowMs: number,
): Promise<LimitUsage[]> {
  const people = await countNewPeople(tx, id, nowMs);
  const used: Readonly<Record<(typeof MEASURED)[number], number>> = {
    relaysPerEnvironment: await countRelays(tx, id),
    invitesPerDay: people.invites,
    signupsPerDay: people.signups,
    emailsPerHour: await countRelayEmails(tx, appId, nowMs),
    storedPerEnvironmentMb: Math.ceil((await findStoredBytes(tx, id)) / MB),
  };
  return MEASURED.map((name) => ({ name, ...LIMIT_WORDS[name], used: used[name], limit: limits[name] }));
}
