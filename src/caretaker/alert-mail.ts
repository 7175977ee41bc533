/**
 * Mails alerts to the owners: what gathered in a minute in one mail, and no second mail of an environment within a quarter of an hour. An
 * alert counts as mailed from the transaction that intends the mail, so that it is never sent twice; only a mail that certainly did not
 * leave is tried again. Where an environment cannot send, its alerts stay on the dashboard.
 */
import { findApp } from "../account/app.ts";
import { alertOn, type Environment, findEnvironmentById } from "../account/environment.ts";
import { listOwners } from "../account/owner.ts";
import type { Clock } from "../ground/clock.ts";
import { DAY_MS } from "../ground/limit.ts";
import type { Log } from "../ground/log.ts";
import { endOf, finishEmail, intendEmail } from "../mail/email.ts";
import { readMailSettings } from "../mail/mail-settings.ts";
import { MAIL_TROUBLES, type Mailer, type MailOutcome, type OutgoingMail } from "../mail/mailer.ts";
import { findSenderAddress } from "../mail/sender-domain.ts";
import { type Reader, type Store, StoreUnavailable, type Writer } from "../store/port.ts";
import {
  ALERT_MAIL_SWITCH,
  findBurstBefore,
  listUnmailedAlerts,
  listUnmailedEnvironments,
  markAlertMailed,
  markAlertUnmailed,
} from "../watch/alert.ts";
import { type ToldAlert, writeAlertMail } from "./alert-text.ts";

const LOOK_EVERY_MS = 60_000;
/** How long a burst gathers before its mail. */
const GATHER_MS = 60_000;
const PACE_MS = 15 * 60_000;
/** Older alerts are not mailed any more: a server that can send at last does not begin with last month's. */
const MAX_AGE_MS = DAY_MS;
const MAX_TOLD = 50;
const STOP_WAIT_MS = 10_000;
const LOCAL_OWNER = "owner@localhost";
const LOCAL_SENDER = "account@localhost";

const STOPPED: MailOutcome = {
  kind: "failed",
  reason: "stopped",
  message: MAIL_TROUBLES.stopped,
  retry: true,
};

interface AlertMailRooms {
  store: Store;
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
}

export class AlertMail {
  readonly #rooms: AlertMailRooms;
  /** Environments whose last mail failed, and from when on (monotonic) it is tried again. */
  readonly #retryAt = new Map<number, number>();
  /** What was logged of environments that cannot send. */
  readonly #said = new Set<string>();
  #cancelTimer: () => void = () => undefined;
  #looking: Promise<void> = Promise.resolve();
  #running = false;

  constructor(rooms: AlertMailRooms) {
    this.#rooms = rooms;
  }

  /** Begins; the first look is a minute away. */
  start(): void {
    this.#running = true;
    this.#sleep();
  }

  /** Waits for a mail that is on its way, but not for a mail server that keeps silent. */
  async stop(): Promise<void> {
    this.#running = false;
    this.#cancelTimer();
    let cancel = (): void => undefined;
    const waited = new Promise<void>((resolve) => {
      cancel = this.#rooms.clock.after(STOP_WAIT_MS, resolve);
    });
    await Promise.race([this.#looking, waited]);
    cancel();
  }

  #sleep(): void {
    if (!this.#running) return;
    this.#cancelTimer = this.#rooms.clock.after(LOOK_EVERY_MS, () => {
      this.#looking = this.#look().finally(() => this.#sleep());
    });
  }

  async #look(): Promise<void> {
    const { store, clock, log } = this.#rooms;
    try {
      const nowMs = clock.now();
      const waiting = await store.read((tx) => listUnmailedEnvironments(tx, nowMs - MAX_AGE_MS));
      for (const { environmentId, oldestAt, lastMailedAt } of waiting) {
        // A clock that was set back must not hold a mail up.
        const gathered = Math.abs(nowMs - oldestAt) >= GATHER_MS;
        const paced = lastMailedAt === null || Math.abs(nowMs - lastMailedAt) >= PACE_MS;
        const retry = (this.#retryAt.get(environmentId) ?? 0) <= clock.monotonicMs();
        if (this.#running && gathered && paced && retry) await this.#mail(environmentId);
      }
    } catch (error) {
      if (this.#running && !(error instanceof StoreUnavailable))
        log.error("alerts cannot be mailed", { error });
    }
  }

  async #mail(environmentId: number): Promise<void> {
    const { store, clock } = this.#rooms;
    const planned = await store.read((tx) => this.#plan(tx, environmentId));
    if (typeof planned === "string") this.#sayOnce(environmentId, planned);
    if (planned === null || typeof planned === "string") return;
    const mails = await store.write("app", (tx) => this.#intend(tx, environmentId));
    const ended: { mail: OutgoingMail; outcome: MailOutcome }[] = [];
    for (const mail of mails.outgoing) {
      const outcome = this.#running ? await this.#rooms.mailer.send(mail) : STOPPED;
      ended.push({ mail, outcome });
    }
    const again =
      ended.length > 0 && ended.every(({ outcome }) => outcome.kind === "failed" && outcome.retry);
    await store.write("app", async (tx) => {
      for (const { mail, outcome } of ended) await finishEmail(tx, mail.emailId, endOf(outcome), clock.now());
      if (again) for (const id of mails.alertIds) await markAlertUnmailed(tx, id);
    });
    if (again) this.#retryAt.set(environmentId, clock.monotonicMs() + PACE_MS);
    else this.#retryAt.delete(environmentId);
  }

  /** The mail to send now; null where there is nothing to tell, a sentence where this environment cannot send. */
  async #plan(tx: Reader, environmentId: number): Promise<Plan | string | null> {
    const { clock, local } = this.#rooms;
    const environment = await findEnvironmentById(tx, environmentId);
    if (environment === null || !alertOn(environment, ALERT_MAIL_SWITCH)) return null;
    const unmailed = await listUnmailedAlerts(tx, environmentId, MAX_TOLD, clock.now() - MAX_AGE_MS);
    const alerts = unmailed.filter(({ code }) => alertOn(environment, code));
    if (alerts.length === 0) return null;
    const owners = (await listOwners(tx)).map(({ email }) => email);
    const recipients = local && owners.length === 0 ? [LOCAL_OWNER] : owners;
    if (recipients.length === 0) return "no owner is there to be mailed";
    const sender = await findSenderAddress(tx, environmentId, "account");
    if (!local && readMailSettings(environment).smtp === null) return "it has no SMTP server";
    if (!local && sender === null) return "it has no verified sender domain";
    const told: ToldAlert[] = [];
    for (const alert of alerts) told.push({ alert, before: await findBurstBefore(tx, alert) });
    const appName = (await findApp(tx, environment.appId))?.name ?? environment.appId;
    const pageUrl = `${this.#rooms.baseUrl()}/apps/${environment.appId}/${environment.name}/attention`;
    const { subject, text } = writeAlertMail({ appName, environment, pageUrl }, told);
    const alertIds = alerts.map(({ id }) => id);
    return { environment, from: sender ?? LOCAL_SENDER, recipients, subject, text, alertIds };
  }

  /** Plans once more, in the transaction that marks the alerts as mailed and writes a mail for each owner. */
  async #intend(
    tx: Writer,
    environmentId: number,
  ): Promise<{ outgoing: OutgoingMail[]; alertIds: string[] }> {
    const plan = await this.#plan(tx, environmentId);
    if (plan === null || typeof plan === "string") return { outgoing: [], alertIds: [] };
    const { from, recipients, subject, text, alertIds } = plan;
    const nowMs = this.#rooms.clock.now();
    const outgoing: OutgoingMail[] = [];
    for (const to of recipients) {
      const emailId = await intendEmail(tx, {
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
    return { outgoing, alertIds };
  }

  #sayOnce(environmentId: number, why: string): void {
    const said = `${environmentId} ${why}`;
    if (this.#said.has(said)) return;
    this.#said.add(said);
    this.#rooms.log.warn("alerts of an environment stay on the dashboard and are not mailed", {
      environmentId,
      why,
    });
  }
}
