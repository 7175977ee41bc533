/**
 * Mails alerts to the owners: what gathered in a minute in one mail, and no second mail of an environment within a quarter of an hour. An
 * alert counts as mailed from the transaction that intends the mail, so that it is never sent twice; only a mail that certainly did not
 * leave is tried again. Where an environment cannot send, its alerts stay on the dashboard.
 */

import { type Clock, Loop, toIso, waitAtMost } from "../../base/clock.ts";
import { DAY_MS, MINUTE_MS } from "../../base/limit.ts";
import type { Log } from "../../base/log.ts";
import { MAIL_TROUBLES } from "../../base/problem-code.ts";
import { findApp } from "../../platform/account/app.ts";
import { type Environment, findEnvironmentById, isAlertEnabled } from "../../platform/account/environment.ts";
import { listOwners } from "../../platform/account/owner.ts";
import {
  ALERT_MAIL_SWITCH,
  type AlertRow,
  findBurstBefore,
  listUnmailedAlerts,
  listUnmailedEnvironments,
  markAlertMailed,
  markAlertUnmailed,
} from "../../platform/audit/alert.ts";
import {
  clearUndeliveredAlerts,
  listUndeliveredAlertEnvironments,
  recordAlertMailOutcomes,
  recordUndeliverableAlerts,
  type UndeliverableReason,
} from "../../platform/audit/undelivered-alerts.ts";
import { finishEmail, recordIntendedEmail, toEmailEnd } from "../../platform/mail/email.ts";
import { endInterruptedMails } from "../../platform/mail/interrupted-mail.ts";
import { readMailSettings } from "../../platform/mail/mail-settings.ts";
import {
  type Mailer,
  type MailOutcome,
  makeSubject,
  makeText,
  type OutgoingMail,
} from "../../platform/mail/mailer.ts";
import { findSenderAddress } from "../../platform/mail/sender-domain.ts";
import { type FencedStore, type Reader, StoreUnavailable, type Writer } from "../../store/port.ts";
import { resolveOverAlerts } from "./alert-resolution.ts";

const LOOK_EVERY_MS = MINUTE_MS;
/** How long a burst gathers before its mail. */
const GATHER_MS = MINUTE_MS;
const PACE_MS = 15 * MINUTE_MS;
/** Older alerts are not mailed any more: a server that can send at last does not begin with last month's. */
const MAX_AGE_MS = DAY_MS;
/** Longer than a mail takes, and the clocks of two nodes differ. */
const FORSAKEN_MS = 10 * MINUTE_MS;
const MAX_TOLD = 50;
/** A mail server that drips holds each mail for a minute; what another environment's owners are told does not wait for that. */
const ENVIRONMENTS_AT_ONCE = 16;
const MAILS_AT_ONCE = 4;
const STOP_WAIT_MS = 10_000;
const NO_SERVER = "it has no SMTP server";
const LOCAL_OWNER = "owner@localhost";
const LOCAL_SENDER = "account@localhost";

const STOPPED: MailOutcome = {
  kind: "failed",
  reason: "stopped",
  message: MAIL_TROUBLES.stopped,
  retry: true,
};

interface AlertMailDeps {
  store: FencedStore;
  /** Whether other nodes send mail too. */
  beside?: boolean;
  clock: Clock;
  log: Log;
  mailer: Mailer;
  /** Local development: mail stays in the mailbox, and needs neither owner nor sender. */
  local: boolean;
  /** The dashboard's origin, without a trailing slash. */
  baseUrl: () => string;
}

interface Plan {
  environment: Environment;
  from: string;
  recipients: string[];
  subject: string;
  text: string;
  alertIds: string[];
  /** When the oldest of them began. */
  sinceMs: number;
}

/** Alerts wait, and this environment cannot send. */
interface Stuck {
  cannot: UndeliverableReason | typeof NO_SERVER;
  sinceMs: number;
}

export class AlertMail {
  readonly #deps: AlertMailDeps;
  readonly #loop: Loop;
  /** Environments whose last mail failed, and from when on (monotonic) it is tried again. */
  readonly #retryAt = new Map<number, number>();
  /** What was logged of environments that cannot send. */
  readonly #said = new Set<string>();

  constructor(deps: AlertMailDeps) {
    this.#deps = deps;
    this.#loop = new Loop({
      clock: deps.clock,
      everyMs: LOOK_EVERY_MS,
      turn: () => this.#look(),
      onError(error) {
        if (!(error instanceof StoreUnavailable)) deps.log.error("alerts cannot be mailed", { error });
      },
    });
  }

  /** Begins; the first look is a minute away. */
  start(): void {
    void this.#loop.start(LOOK_EVERY_MS);
  }

  /** Waits for a mail that is on its way, but not for a mail server that keeps silent. */
  stop(): Promise<void> {
    return waitAtMost(this.#deps.clock, STOP_WAIT_MS, this.#loop.stop());
  }

  async #look(): Promise<undefined> {
    const { store, clock } = this.#deps;
    const nowMs = clock.now();
    await resolveOverAlerts(store, nowMs);
    if (this.#deps.beside) await this.#endForsaken(nowMs);
    for (const id of await store.read(listUndeliveredAlertEnvironments)) await this.#endUnwanted(id);
    const waiting = await store.read((tx) => listUnmailedEnvironments(tx, nowMs - MAX_AGE_MS));
    const due = waiting.filter(({ environmentId, oldestAt, lastMailedAt }) => {
      // A clock that was set back must not hold a mail up.
      const gathered = Math.abs(nowMs - oldestAt) >= GATHER_MS;
      const paced = lastMailedAt === null || Math.abs(nowMs - lastMailedAt) >= PACE_MS;
      const retry = (this.#retryAt.get(environmentId) ?? 0) <= clock.monotonicMs();
      return gathered && paced && retry;
    });
    await eachAtOnce(due, ENVIRONMENTS_AT_ONCE, async ({ environmentId }) => {
      if (this.#loop.running) await this.#mail(environmentId);
    });
  }

  /** Mails that no relay sent are anybody's: those that cannot be on their way any more are of a node that died. */
  async #endForsaken(nowMs: number): Promise<void> {
    const { store, log } = this.#deps;
    const before = nowMs - FORSAKEN_MS;
    const mails = await store.write("app", (tx) => endInterruptedMails(tx, nowMs, { before }));
    if (mails.unknown + mails.notLeft > 0) log.warn("mails of another node had no end", mails);
  }

  /** Who wants no alert by mail, or set no mail server, misses none. */
  async #endUnwanted(environmentId: number): Promise<void> {
    const { store, clock, local } = this.#deps;
    const environment = await store.read((tx) => findEnvironmentById(tx, environmentId));
    if (environment !== null && isAlertEnabled(environment, ALERT_MAIL_SWITCH)) {
      if (local || readMailSettings(environment).smtp !== null) return;
    }
    await store.write("app", (tx) => clearUndeliveredAlerts(tx, environmentId, clock.now()));
  }

  async #mail(environmentId: number): Promise<void> {
    const { store, clock } = this.#deps;
    const planned = await store.read((tx) => this.#plan(tx, environmentId));
    if (planned === null) return;
    if ("cannot" in planned) {
      await this.#tellStuck(environmentId, planned);
      return;
    }
    const mails = await store.write("app", (tx) => this.#intend(tx, environmentId));
    const ended: { mail: OutgoingMail; outcome: MailOutcome }[] = [];
    await eachAtOnce(mails.outgoing, MAILS_AT_ONCE, async (mail) => {
      const outcome = this.#loop.running ? await this.#deps.mailer.send(mail) : STOPPED;
      ended.push({ mail, outcome });
    });
    const again =
      ended.length > 0 && ended.every(({ outcome }) => outcome.kind === "failed" && outcome.retry);
    await store.write("app", async (tx) => {
      for (const { mail, outcome } of ended)
        await finishEmail(tx, mail.emailId, toEmailEnd(outcome), clock.now());
      if (again) for (const id of mails.alertIds) await markAlertUnmailed(tx, id);
      const outcomes = ended.map(({ outcome }) => outcome);
      await recordAlertMailOutcomes(tx, environmentId, {
        outcomes,
        sinceMs: mails.sinceMs,
        nowMs: clock.now(),
      });
    });
    if (again) this.#retryAt.set(environmentId, clock.monotonicMs() + PACE_MS);
    else this.#retryAt.delete(environmentId);
  }

  /** The mail to send now; null where there is nothing to tell. */
  async #plan(tx: Reader, environmentId: number): Promise<Plan | Stuck | null> {
    const { clock, local } = this.#deps;
    const environment = await findEnvironmentById(tx, environmentId);
    if (environment === null || !isAlertEnabled(environment, ALERT_MAIL_SWITCH)) return null;
    const unmailed = await listUnmailedAlerts(tx, environmentId, MAX_TOLD, clock.now() - MAX_AGE_MS);
    const alerts = unmailed.filter(({ code }) => isAlertEnabled(environment, code));
    if (alerts.length === 0) return null;
    const sinceMs = Math.min(...alerts.map(({ at }) => at));
    if (!local && readMailSettings(environment).smtp === null) return { cannot: NO_SERVER, sinceMs };
    const owners = (await listOwners(tx)).map(({ email }) => email);
    const recipients = local && owners.length === 0 ? [LOCAL_OWNER] : owners;
    if (recipients.length === 0) return { cannot: "no owner is there to be mailed", sinceMs };
    const sender = await findSenderAddress(tx, environmentId, "account");
    if (!local && sender === null) return { cannot: "it has no verified sender domain", sinceMs };
    const told: MailedAlert[] = [];
    for (const alert of alerts) told.push({ alert, before: await findBurstBefore(tx, alert) });
    const appName = (await findApp(tx, environment.appId))?.name ?? environment.appId;
    const placeUrl = `${this.#deps.baseUrl()}/apps/${environment.appId}/${environment.name}`;
    const { subject, text } = writeAlertMail({ appName, environment, placeUrl }, told);
    const alertIds = alerts.map(({ id }) => id);
    return { environment, from: sender ?? LOCAL_SENDER, recipients, subject, text, alertIds, sinceMs };
  }

  /** Plans once more, in the transaction that marks the alerts as mailed and writes a mail for each owner. */
  async #intend(
    tx: Writer,
    environmentId: number,
  ): Promise<{ outgoing: OutgoingMail[]; alertIds: string[]; sinceMs: number }> {
    const plan = await this.#plan(tx, environmentId);
    const nowMs = this.#deps.clock.now();
    if (plan === null || "cannot" in plan) return { outgoing: [], alertIds: [], sinceMs: nowMs };
    const { from, recipients, subject, text, alertIds, sinceMs } = plan;
    const outgoing: OutgoingMail[] = [];
    for (const to of recipients) {
      const emailId = await recordIntendedEmail(tx, {
        environmentId,
        personId: null,
        recipient: to,
        sender: from,
        kind: "alert",
        subject,
        text,
        relayName: null,
        eventId: null,
        nowMs,
      });
      outgoing.push({ environmentId, emailId, from, to, subject, text });
    }
    for (const id of alertIds) await markAlertMailed(tx, id, nowMs);
    return { outgoing, alertIds, sinceMs };
  }

  async #tellStuck(environmentId: number, { cannot: why, sinceMs }: Stuck): Promise<void> {
    const { store, clock } = this.#deps;
    this.#sayOnce(environmentId, why);
    if (why === NO_SERVER) return;
    await recordUndeliverableAlerts(store, environmentId, { why, sinceMs, nowMs: clock.now() });
  }

  #sayOnce(environmentId: number, why: string): void {
    const said = `${environmentId} ${why}`;
    if (this.#said.has(said)) return;
    this.#said.add(said);
    this.#deps.log.warn("alerts of an environment stay on the dashboard and are not mailed", {
      environmentId,
      why,
    });
  }
}

/** Does it for each of them, `most` at once. Throws the first error, once all that began have ended. */
async function eachAtOnce<One>(
  all: readonly One[],
  most: number,
  work: (one: One) => Promise<void>,
): Promise<void> {
  const left = all.values();
  const turns = Array.from({ length: Math.min(most, all.length) }, async () => {
    for (const one of left) await work(one);
  });
  for (const ended of await Promise.allSettled(turns)) if (ended.status === "rejected") throw ended.reason;
}

/** An alert, and the burst of the same that ended shortly before it, whose last count no mail told. */
interface MailedAlert {
  alert: AlertRow;
  before: AlertRow | null;
}

/** `placeUrl`: where the dashboard shows the environment. */
function writeAlertMail(
  words: { appName: string; environment: Pick<Environment, "name">; placeUrl: string },
  told: readonly MailedAlert[],
): { subject: string; text: string } {
  const where = `${words.appName} (${words.environment.name})`;
  const [only] = told;
  const what =
    told.length === 1 && only !== undefined
      ? `${only.alert.code} of ${nameOf(only.alert)}${times(only.alert.count)}`
      : `${told.length} alerts`;
  const parts = [
    ...told.map((one) => formatAlert(one, words.placeUrl)),
    `All of them: ${words.placeUrl}/attention\nWhich alerts are raised, and whether they are mailed, is switched with relay settings set; relay alerts resolve <id> says that one is seen to.`,
  ];
  return { subject: makeSubject(`${where}: ${what}`), text: makeText(`${parts.join("\n\n")}\n`) };
}

function formatAlert({ alert, before }: MailedAlert, placeUrl: string): string {
  const { code, target, message, count, at, lastAt } = alert;
  const when = count === 1 ? toIso(at) : `${count} times, first ${toIso(at)}, last ${toIso(lastAt)}`;
  const lines = [`${nameOf(alert)} · ${code} · ${when}`, message];
  if (before !== null && before.count > 1)
    lines.push(
      `The burst before it, from ${toIso(before.at)} to ${toIso(before.lastAt)}, came to ${before.count}.`,
    );
  if (target.startsWith("relay:")) lines.push(`${placeUrl}/relays/${encodeURIComponent(nameOf(alert))}`);
  return lines.join("\n");
}

function nameOf({ target }: AlertRow): string {
  return target.slice(target.indexOf(":") + 1);
}

function times(count: number): string {
  return count === 1 ? "" : `, ${count} times`;
}
