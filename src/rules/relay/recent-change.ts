/**
 * Finds the change that was made shortly before a trouble began, such as a new version of a definition, and how to undo it. Home, alerts, alert mail
 * and relay doctor name it first, because the undo is usually the remedy.
 */
import { type Static, Type } from "typebox";
import { toIso } from "../../base/clock.ts";
import type { ProblemCode } from "../../base/code/problem-code.ts";
import type { ResultCode } from "../../base/code/result-code.ts";
import { MINUTE_MS } from "../../base/limit.ts";
import { oneOf, orNull, textOrNull, time } from "../../base/schema.ts";
import { findAlertBegin } from "../../platform/audit/alert.ts";
import { listNewestChanges, type TargetChange } from "../../platform/audit/audit.ts";
import type { AuditAction } from "../../platform/audit/audit-action.ts";
import { findRaisedAt } from "../../platform/audit/problem.ts";
import { findSenderDomain } from "../../platform/mail/sender-domain.ts";
import type { Reader } from "../../store/port.ts";
import { type RelayRow, relayTarget } from "./relay.ts";
import { listCatalogTargets } from "./relay-reference.ts";
import { findStreak } from "./streak.ts";
import type { TroubleRows } from "./trouble-rows.ts";

/** The longest time between a change and the trouble that it can explain. */
const WINDOW_MS = 30 * MINUTE_MS;

export const recentChangeView = Type.Object({
  kind: oneOf([
    "definition",
    "secret",
    "collection",
    "product",
    "plan",
    "access",
    "mail",
    "processor",
    "sender_domain",
  ]),
  /** The name of the changed relay or catalog item, or the sender domain; null for settings. */
  name: textOrNull,
  /** True if the item was deleted. */
  deleted: Type.Boolean(),
  /** The version of the definition before the change; null for another change. */
  restores: orNull(Type.Integer()),
  at: time,
  /** The change in a sentence: who, what and when. */
  message: Type.String(),
  /** The way to undo it, in a sentence. */
  todo: Type.String(),
});
export type RecentChange = Static<typeof recentChangeView>;

/** Things that a change can concern: the relay, the catalog items that it names, the mail settings or the secret of the card processor. */
export type ChangeSource = "relay" | "catalog" | "mail" | "processor";

/** The changes that can cause a trouble. A code that is not listed has a cause outside, or a cause that its message names. */
const SOURCES: Partial<Record<ProblemCode | ResultCode, readonly ChangeSource[]>> = {
  relay_failed: ["relay", "catalog", "mail"],
  relay_failing: ["relay", "catalog", "mail"],
  relay_refusing: ["relay", "processor"],
  never_verified: ["relay"],
  secret_missing: ["relay", "processor"],
  relay_ignoring: ["relay"],
  relay_nobody: ["relay"],
  sale_nobody: ["relay"],
  relay_misfit: ["relay", "catalog"],
  sender_domain_required: ["mail"],
  alerts_unmailed: ["mail"],
  codes_unmailed: ["mail"],
};

const ACTIONS = [
  "relay.updated",
  "relay.secret_changed",
  "relay.signing_secret_changed",
  "collection.changed",
  "collection.deleted",
  "product.changed",
  "product.deleted",
  "plan.changed",
  "plan.deleted",
  "access.changed",
  "access.deleted",
  "settings.changed",
  "sender_domain.changed",
] as const satisfies readonly AuditAction[];

/** The codes whose trouble a change of a secret can cause or fix. */
const CODES_OF_SECRET: Partial<Record<AuditAction, readonly string[]>> = {
  "relay.secret_changed": ["relay_refusing", "never_verified", "secret_missing"],
  "relay.signing_secret_changed": ["relay_failing", "relay_failed"],
};

/** Lists the changes that can cause or fix a trouble with this code. */
export function listActions(code: string): AuditAction[] {
  return ACTIONS.filter((action: AuditAction) => CODES_OF_SECRET[action]?.includes(code) ?? true);
}

/** The subject of a problem, an alert or an attention item. */
export interface Trouble {
  code: string;
  target: string;
  /** The time when it began, for a trouble without an alert or a problem. */
  sinceMs: number;
}

export async function findRecentChange(
  tx: Reader,
  rows: TroubleRows,
  { code, target, sinceMs }: Trouble,
): Promise<RecentChange | null> {
  const sources = SOURCES[code as ProblemCode] ?? [];
  if (sources.length === 0) return null;
  const untilMs = await findBegin(tx, rows, { code, target, sinceMs });
  // A relay that never verified a request has no version that worked.
  const isUnproven = code === "never_verified";
  const actions = listActions(code).filter((action) => !isUnproven || action !== "relay.updated");
  const period = { actions, fromMs: untilMs - WINDOW_MS, untilMs };
  const relay = await rows.findRelay(tx, target);
  const changes = await listChanges(tx, rows.environmentId, { sources, relay }, period);
  // A change of the relay or of an item that it names explains more than a change of the environment.
  const [change] = [...changes.filter((one) => !isOfEnvironment(one)), ...changes];
  return change === undefined ? null : viewChange(change);
}

/** Lists the newest change of each thing that can cause the trouble of this relay, if it was made in the period, newest first. */
export async function listChanges(
  tx: Reader,
  environmentId: number,
  { sources, relay }: { sources: readonly ChangeSource[]; relay: RelayRow | null },
  period: { actions: readonly AuditAction[]; fromMs: number; untilMs: number },
): Promise<TargetChange[]> {
  const targets = await listChangeTargets(tx, environmentId, sources, relay);
  if (targets.length === 0) return [];
  const sections = { mail: sources.includes("mail"), processor: sources.includes("processor") };
  return await listNewestChanges(tx, environmentId, { ...period, targets, sections });
}

const SETTINGS = "settings";
const DOMAIN = "sender_domain:";

function isOfEnvironment({ target }: TargetChange): boolean {
  return target === SETTINGS || target.startsWith(DOMAIN);
}

/** Reports whether mail can be part of the trouble: it has no relay, or its relay mails a person. */
export function concernsMail(sources: readonly ChangeSource[], relay: RelayRow | null): boolean {
  if (!sources.includes("mail")) return false;
  return relay === null || relay.definition.actions.some(({ type }) => type === "email_person");
}

/** Lists the targets, in the form of the audit log, whose changes can cause the trouble. */
async function listChangeTargets(
  tx: Reader,
  environmentId: number,
  sources: readonly ChangeSource[],
  relay: RelayRow | null,
): Promise<string[]> {
  const targets: string[] = [];
  if (relay !== null && sources.includes("relay")) targets.push(relayTarget(relay.name));
  if (relay !== null && sources.includes("catalog")) targets.push(...listCatalogTargets(relay.definition));
  if (concernsMail(sources, relay)) {
    const domain = await findSenderDomain(tx, environmentId);
    targets.push(SETTINGS, ...(domain === null ? [] : [`${DOMAIN}${domain.domain}`]));
  }
  if (sources.includes("processor") && relay?.secretKind === "processor") targets.push(SETTINGS);
  return targets;
}

/** Finds when the trouble began: when its alert, its problem or its streak began, whichever is the earliest. */
async function findBegin(tx: Reader, rows: TroubleRows, { code, target, sinceMs }: Trouble): Promise<number> {
  const { environmentId } = rows;
  const key = { environmentId, code, target };
  const known = [
    findAlertBegin(await rows.listOpenBursts(tx), key),
    await findRaisedAt(tx, key),
    await findStreakBegin(tx, environmentId, code, target),
  ].filter((one) => one !== null);
  return known.length === 0 ? sinceMs : Math.min(...known);
}

/** Finds when the streak of a relay's problem began, which is before it was raised. Returns null where no row says it. */
export async function findStreakBegin(
  tx: Reader,
  environmentId: number,
  code: string,
  target: string,
): Promise<number | null> {
  const streak = code === "relay_failed" ? "relay_failing" : code;
  return (await findStreak(tx, environmentId, streak, target))?.since ?? null;
}

/** Splits a target of the audit log, such as `relay:orders` or `settings`. */
export function splitTarget(target: string): [noun: string, name: string | null] {
  const colon = target.indexOf(":");
  return colon === -1 ? [target, null] : [target.slice(0, colon), target.slice(colon + 1)];
}

function viewChange({
  target,
  action,
  at,
  actor,
  actorName,
  versionBefore,
  mail,
}: TargetChange): RecentChange {
  const [noun, name] = splitTarget(target);
  const deleted = action.endsWith(".deleted");
  const who = describeActor(actor, actorName);
  const say = (kind: RecentChange["kind"], what: string, todo: string): RecentChange => ({
    kind,
    name,
    deleted,
    restores: null,
    at: toIso(at),
    message: `${who} ${what} at ${toIso(at)}, shortly before this problem began.`,
    todo,
  });
  switch (noun) {
    case "relay":
      return viewRelayChange(say, action, name ?? "", versionBefore);
    case "collection":
    case "product":
    case "plan":
    case "access": {
      const verb = deleted ? "deleted" : "changed";
      const todo = deleted ? "Create it again" : "Change it back";
      const kind = noun === "access" ? "access slug" : noun;
      const what = name === null ? `${kind}s` : `${kind} ${name}`;
      return say(noun, `${verb} the ${what}`, `${todo}: \`relay catalog set ${noun}\`.`);
    }
    case "sender_domain":
      return say(noun, `changed the sender domain ${name}`, "Check the sender domain: `relay domain show`.");
    default:
      return mail === null
        ? say(
            "processor",
            "changed the secret of the card processor",
            "Store the earlier secret again: `relay settings set processorSecret`.",
          )
        : say("mail", "changed the mail settings", "Change them back: `relay settings set mail`.");
  }
}

function viewRelayChange(
  say: (kind: RecentChange["kind"], what: string, todo: string) => RecentChange,
  action: string,
  name: string,
  versionBefore: number | null,
): RecentChange {
  if (action === "relay.secret_changed")
    return say(
      "secret",
      `changed the secret of ${name}`,
      `Store the secret that the sender uses: \`relay relays set-secret ${name}\`.`,
    );
  if (action === "relay.signing_secret_changed")
    return say(
      "secret",
      `changed the signing secret of ${name}`,
      `Give the new signing secret to the receiver, or create another: \`relay relays rotate-secret ${name} --signing\`.`,
    );
  const restores = Number(versionBefore);
  const todo = `Restore version ${restores}: \`relay relays restore ${name} --to ${restores}\`.`;
  return { ...say("definition", `saved version ${restores + 1} of ${name}`, todo), restores };
}

/** Returns the actor of the audit log as a person names it. */
export function describeActor(actor: string, name: string | null): string {
  if (actor.startsWith("owner:")) return actor.slice("owner:".length);
  if (actor.startsWith("key:")) return name === null ? "A key that is deleted" : `The key ${name}`;
  return actor === "command line" ? "The command line" : actor;
}
