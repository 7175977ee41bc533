/**
 * Mails alerts to the owners: a burst of a minute in one mail, and one mail of an environment in a quarter of an hour. The transaction that intends
 * a mail marks its alerts as mailed, so that none is sent twice. Only a mail that certainly did not leave is retried. Alerts of an environment that
 * cannot send stay on the dashboard.
 */

import { BackgroundJob, type Clock, toIso, waitAtMost } from "../../base/clock.ts";
import { adviseOn, listParts, titleOf } from "../../base/code/code.ts";
import { formatMailFailure } from "../../base/code/mail-code.ts";
import { DAY_MS, MINUTE_MS } from "../../base/limit.ts";
import type { Log } from "../../base/log.ts";
import { findApp } from "../../platform/account/app.ts";
import { type Environment, findEnvironmentById, isAlertEnabled } from "../../platform/account/environment.ts";
import { listAddresses } from "../../platform/account/membership.ts";
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
import { endInterruptedMails, hasInterruptedMails } from "../../platform/mail/interrupted-mail.ts";
import { readMailSettings } from "../../platform/mail/mail-settings.ts";
import {
  type Mailer,
  type MailOutcome,
  makeSubject,
  makeText,
  type OutgoingMail,
} from "../../platform/mail/mailer.ts";
import { findSenderAddress } from "../../platform/mail/sender-domain.ts";
import { relayOf } from "../../rules/relay/relay.ts";
import { addFigures } from "../../rules/relay/streak-figure.ts";
import { listHints } from "../../rules/relay/trouble-hint.ts";
import { type FencedStore, type Reader, StoreUnavailable, type Writer } from "../../store/port.ts";
import { updateRejected } from "../event/rejected-arrival.ts";
import { resolveOverAlerts } from "./alert-resolution.ts";
import { alertMissingSecrets } from "./missing-secret.ts";

const LOOK_EVERY_MS = MINUTE_MS;
/** The time that alerts are gathered for a mail. */
const GATHER_MS = MINUTE_MS;
const PACE_MS = 15 * MINUTE_MS;
/** Older alerts are not mailed, so that a server that can send again does not begin with last month's. */
const MAX_AGE_MS = DAY_MS;
/** A time longer than a mail takes, with a margin for different clocks of two nodes. */
const INTERRUPTED_MS = 10 * MINUTE_MS;
const MAX_ALERTS = 50;
/** A slow mail server holds each mail for a minute. Other environments' mails do not wait for it. */
const ENVIRONMENTS_AT_ONCE = 16;
const MAILS_AT_ONCE = 4;
const STOP_WAIT_MS = 10_000;
const NO_SERVER = "the environment has no SMTP server";
const LOCAL_OWNER = "owner@localhost";
const LOCAL_SENDER = "account@localhost";

const STOPPED: MailOutcome = {
  kind: "failed",
  reason: "stopped",
  message: formatMailFailure("stopped"),
  retry: true,
};

interface AlertMailDeps {
  store: FencedStore;
  /** True if other nodes send mail too. */
  isCluster?: boolean;
  clock: Clock;
  log: Log;
  mailer: Mailer;
  /** True in local development, where mail stays in the mailbox and needs neither owner nor sender. */
  local: boolean;
  /** The dashboard's origin, without a trailing slash. */
  baseUrl: () => string;
}

/** The hints by the id of the alert. */
type HintsOfAlerts = ReadonlyMap<string, readonly string[]>;

interface Plan {
  environment: Environment;
  from: string;
  recipients: string[];
  subject: string;
  text: string;
  alertIds: string[];
  hints: HintsOfAlerts;
  /** The time when the oldest of them began. */
  sinceMs: number;
}

/** Alerts wait, and this environment cannot send mail. */
interface Stuck {
  cannot: UndeliverableReason | typeof NO_SERVER;
  sinceMs: number;
}

export class AlertMail extends BackgroundJob {
  readonly #deps: AlertMailDeps;
  /** Environments whose last mail failed, with the monotonic time from which it is retried. */
  readonly #retryAt = new Map<number, number>();
  /** Warnings that were logged already. */
  readonly #warned = new Set<string>();

  constructor(deps: AlertMailDeps) {
    super({
      clock: deps.clock,
      everyMs: LOOK_EVERY_MS,
      firstAfterMs: LOOK_EVERY_MS,
      onError(error) {
        if (!(error instanceof StoreUnavailable)) deps.log.error("alerts cannot be mailed", { error });
      },
    });
    this.#deps = deps;
  }

  /** Waits for a mail that is on its way, but not for a mail server that does not answer. */
  override stop(): Promise<void> {
    return waitAtMost(this.#deps.clock, STOP_WAIT_MS, super.stop());
  }

  protected override async turn(): Promise<undefined> {
    const { store, clock } = this.#deps;
    const nowMs = clock.now();
    await resolveOverAlerts(store, nowMs);
    await alertMissingSecrets(store, nowMs);
    await updateRejected(store, nowMs);
    if (this.#deps.isCluster) await this.#endInterrupted(nowMs);
    for (const id of await store.read(listUndeliveredAlertEnvironments)) await this.#clearUnwanted(id);
    const waiting = await store.read((tx) => listUnmailedEnvironments(tx, nowMs - MAX_AGE_MS));
    const due = waiting.filter(({ environmentId, oldestAt, lastMailedAt }) => {
      // The absolute difference covers a clock that was set back.
      const gathered = Math.abs(nowMs - oldestAt) >= GATHER_MS;
      const paced = lastMailedAt === null || Math.abs(nowMs - lastMailedAt) >= PACE_MS;
      const retry = (this.#retryAt.get(environmentId) ?? 0) <= clock.monotonicMs();
      return gathered && paced && retry;
    });
    await eachAtOnce(due, ENVIRONMENTS_AT_ONCE, async ({ environmentId }) => {
      if (this.loop.running) await this.#mail(environmentId);
    });
  }

  /** Ends mails without a relay whose node died: they have been under way for too long. */
  async #endInterrupted(nowMs: number): Promise<void> {
    const { store, log } = this.#deps;
    const before = nowMs - INTERRUPTED_MS;
    if (!(await store.read((tx) => hasInterruptedMails(tx, before)))) return;
    const mails = await store.write("app", (tx) => endInterruptedMails(tx, nowMs, { before }));
    if (mails.unknown + mails.notLeft > 0) log.warn("mails of another node had no end", mails);
  }

  /** Clears the problem of alerts that were not mailed where alert mail is switched off or has no mail server. */
  async #clearUnwanted(environmentId: number): Promise<void> {
    const { store, clock, local } = this.#deps;
    const environment = await store.read((tx) => findEnvironmentById(tx, environmentId));
    if (environment !== null && isAlertEnabled(environment, ALERT_MAIL_SWITCH)) {
      if (local || readMailSettings(environment).smtp !== null) return;
    }
    await store.write("app", (tx) => clearUndeliveredAlerts(tx, environmentId, clock.now()), environmentId);
  }

  async #mail(environmentId: number): Promise<void> {
    const { store, clock } = this.#deps;
    const planned = await store.read((tx) => this.#plan(tx, environmentId));
    if (planned === null) return;
    if ("cannot" in planned) {
      await this.#recordStuck(environmentId, planned);
      return;
    }
    const intend = (tx: Writer) => this.#intend(tx, environmentId, planned.hints);
    const mails = await store.write("app", intend, environmentId);
    const ended: { mail: OutgoingMail; outcome: MailOutcome }[] = [];
    await eachAtOnce(mails.outgoing, MAILS_AT_ONCE, async (mail) => {
      const outcome = this.loop.running ? await this.#deps.mailer.send(mail) : STOPPED;
      ended.push({ mail, outcome });
    });
    const retries =
      ended.length > 0 && ended.every(({ outcome }) => outcome.kind === "failed" && outcome.retry);
    await store.write(
      "app",
      async (tx) => {
        for (const { mail, outcome } of ended)
          await finishEmail(tx, mail.emailId, toEmailEnd(outcome), clock.now());
        if (retries) for (const id of mails.alertIds) await markAlertUnmailed(tx, id);
        const outcomes = ended.map(({ outcome }) => outcome);
        await recordAlertMailOutcomes(tx, environmentId, {
          outcomes,
          sinceMs: mails.sinceMs,
          nowMs: clock.now(),
        });
      },
      environmentId,
    );
    if (retries) this.#retryAt.set(environmentId, clock.monotonicMs() + PACE_MS);
    else this.#retryAt.delete(environmentId);
  }

  /** Plans the mail to send now. Reads the hints unless they are `known`. Returns null where there is nothing to report. */
  async #plan(tx: Reader, environmentId: number, known?: HintsOfAlerts): Promise<Plan | Stuck | null> {
    const { clock, local } = this.#deps;
    const environment = await findEnvironmentById(tx, environmentId);
    if (environment === null || !isAlertEnabled(environment, ALERT_MAIL_SWITCH)) return null;
    const unmailed = await listUnmailedAlerts(tx, environmentId, MAX_ALERTS, clock.now() - MAX_AGE_MS);
    const alerts = unmailed.filter(({ code }) => isAlertEnabled(environment, code));
    if (alerts.length === 0) return null;
    const sinceMs = Math.min(...alerts.map(({ at }) => at));
    if (!local && readMailSettings(environment).smtp === null) return { cannot: NO_SERVER, sinceMs };
    const owners = await listAddresses(tx, "approve", environment);
    const recipients = local && owners.length === 0 ? [LOCAL_OWNER] : owners;
    if (recipients.length === 0) return { cannot: "there is no owner to mail", sinceMs };
    const sender = await findSenderAddress(tx, environmentId, "account");
    if (!local && sender === null)
      return { cannot: "the environment has no verified sender domain", sinceMs };
    const hints = known ?? (await listHintsOfAlerts(tx, environmentId, alerts));
    const mailed: MailedAlert[] = [];
    for (const alert of alerts) {
      const message = await addFigures(tx, environmentId, alert, clock.now());
      const before = await findBurstBefore(tx, alert);
      mailed.push({ alert: { ...alert, message }, hints: hints.get(alert.id) ?? [], before });
    }
    const appName = (await findApp(tx, environment.appId))?.name ?? environment.appId;
    const placeUrl = `${this.#deps.baseUrl()}/apps/${environment.appId}/${environment.name}`;
    const { subject, text } = writeAlertMail({ appName, environment, placeUrl }, mailed);
    const alertIds = alerts.map(({ id }) => id);
    return { environment, from: sender ?? LOCAL_SENDER, recipients, subject, text, alertIds, hints, sinceMs };
  }

  /**
   * Plans again in the transaction that marks the alerts as mailed and writes a mail for each owner. Reuses the hints, because reading them takes
   * long. An alert that was raised in between has none.
   */
  async #intend(
    tx: Writer,
    environmentId: number,
    hints: HintsOfAlerts,
  ): Promise<{ outgoing: OutgoingMail[]; alertIds: string[]; sinceMs: number }> {
    const plan = await this.#plan(tx, environmentId, hints);
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

  async #recordStuck(environmentId: number, { cannot: why, sinceMs }: Stuck): Promise<void> {
    const { store, clock } = this.#deps;
    this.#warnOnce(environmentId, why);
    if (why === NO_SERVER) return;
    await recordUndeliverableAlerts(store, environmentId, { why, sinceMs, nowMs: clock.now() });
  }

  #warnOnce(environmentId: number, why: string): void {
    const warning = `${environmentId} ${why}`;
    if (this.#warned.has(warning)) return;
    this.#warned.add(warning);
    this.#deps.log.warn("alerts of an environment stay on the dashboard and are not mailed", {
      environmentId,
      why,
    });
  }
}

async function listHintsOfAlerts(
  tx: Reader,
  environmentId: number,
  alerts: readonly AlertRow[],
): Promise<HintsOfAlerts> {
  const troubles = alerts.map((alert) => ({ ...alert, sinceMs: alert.at }));
  const hints = await listHints(tx, environmentId, troubles);
  return new Map(alerts.map(({ id }, index) => [id, hints[index] ?? []]));
}

/** Runs `work` for each item, `most` at once. Throws the first error once all that began have ended. */
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

/** An alert, and the burst of the same alert that ended shortly before, whose last count no mail contained. */
interface MailedAlert {
  alert: AlertRow;
  /** The change after the last failure, or else the change shortly before the alert and the names that were probably meant. */
  hints: readonly string[];
  before: AlertRow | null;
}

/** Writes the mail. `placeUrl` is the environment's page in the dashboard. */
function writeAlertMail(
  words: { appName: string; environment: Pick<Environment, "name">; placeUrl: string },
  mailed: readonly MailedAlert[],
): { subject: string; text: string } {
  const where = `${words.appName} (${words.environment.name})`;
  const [single] = mailed;
  const what =
    mailed.length === 1 && single !== undefined
      ? `${nameOf(single.alert)}: ${titleOf(single.alert.code).toLowerCase()}${times(single.alert.count)}`
      : `${mailed.length} alerts`;
  const parts = [
    ...mailed.map((one) => formatAlert(one, words.placeUrl)),
    `All of them: ${words.placeUrl}/alerts\nTo choose which alerts Relay raises and mails, run relay settings set. To mark an alert as resolved, run relay alerts resolve <id>.`,
  ];
  return { subject: makeSubject(`${where}: ${what}`), text: makeText(`${parts.join("\n\n")}\n`) };
}

function formatAlert({ alert, hints, before }: MailedAlert, placeUrl: string): string {
  const { code, target, message, count, at, lastAt } = alert;
  const when = count === 1 ? toIso(at) : `${count} times, first ${toIso(at)}, last ${toIso(lastAt)}`;
  const { todo, next } = adviseOn(code);
  const parts = listParts({ what: message, why: null, todo, next });
  const lines = [
    `${nameOf(alert)}: ${titleOf(code).toLowerCase()} (${code}) · ${when}`,
    ...hints.map((hint) => `Look here first: ${hint}`),
    ...parts.map(({ label, text }) => `${label}: ${text}`),
  ];
  if (before !== null && before.count > 1)
    lines.push(
      `The same happened ${before.count} times from ${toIso(before.at)} to ${toIso(before.lastAt)}.`,
    );
  const relay = relayOf(target);
  if (relay !== null) lines.push(`${placeUrl}/relays/${encodeURIComponent(relay)}`);
  return lines.join("\n");
}

function nameOf({ target }: AlertRow): string {
  return target.slice(target.indexOf(":") + 1);
}

function times(count: number): string {
  return count === 1 ? "" : `, ${count} times`;
}
