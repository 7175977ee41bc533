/**
 * A complete service in a separate process that a test kills: `bun test/crash/service-process.ts <data folder> <sink url> <mail port> [ms ahead]`. It
 * prints `{ port }` when it listens. With its clock ahead it first replays every finished event. It runs in local mode, where call_url can reach the
 * loopback sink. It still sends its emails as a server does, to the mail server on loopback.
 */

import { type Clock, systemClock } from "../../src/base/clock.ts";
import { DEFAULT_LIMITS } from "../../src/base/limit.ts";
import { LOCAL_APP } from "../../src/boot/open-data.ts";
import { replayEvent } from "../../src/engine/event/replay.ts";
import { COMMAND_LINE } from "../../src/platform/account/api-key.ts";
import { requireEnvironment, saveSettings } from "../../src/platform/account/environment.ts";
import { changeMailSettings, MAIL_SECTION } from "../../src/platform/mail/mail-settings.ts";
import type { Mailer } from "../../src/platform/mail/mailer.ts";
import { makeSmtpMailer } from "../../src/platform/mail/smtp-mailer.ts";
import { parseAllowList } from "../../src/platform/outbound/address.ts";
import { createRelay } from "../../src/rules/relay/relay-save.ts";
import { type Service, startService } from "../../src/service.ts";
import { putAccessSlug } from "../../src/shop/people/entitlement.ts";
import { createCollection } from "../../src/shop/records/collection.ts";
import { requireCollectionDefinition } from "../../src/shop/records/collection-definition.ts";
import { savePlan } from "../../src/shop/selling/plan.ts";
import { saveProduct } from "../../src/shop/selling/product.ts";
import { EVENT_ID } from "../kit/event-sql.ts";
import { serviceConfig } from "../kit/service-config.ts";
import { CRASH_PLANS, CRASH_PRODUCTS, CRASH_SECRET, crashRelays } from "./crash-relay.ts";

const [dataDir = "", sinkUrl = "", mailPort = "0", aheadMs = "0"] = process.argv.slice(2);
const clock: Clock = { ...systemClock, now: () => systemClock.now() + Number(aheadMs) };
const UNCAPPED = 1_000_000_000;

const config = serviceConfig(dataDir, {
  mode: "local",
  limits: {
    ...DEFAULT_LIMITS,
    verifiedEventsPerMinute: UNCAPPED,
    eventlessCallsPerMinute: UNCAPPED,
    unverifiedCallsPerMinute: UNCAPPED,
    invitesPerDay: UNCAPPED,
    emailsPerHour: UNCAPPED,
    eventEmailsPerPersonPerDay: UNCAPPED,
  },
  logFormat: "text",
  clock,
});
const allowPrivate = ["localhost"];
/** The mailer needs the store of the started service, and events can run before the start returns. */
const opened = Promise.withResolvers<Mailer>();
const mailer: Mailer = { send: async (mail, options) => (await opened.promise).send(mail, options) };
const service = await startService(config, { printRun: () => undefined, mailer });
opened.resolve(makeSmtpMailer({ ...service, baseUrl: () => service.baseUrl, clock, allowPrivate }));
await seed(service);
if (Number(aheadMs) > 0) await replayAll(service);
console.log(JSON.stringify({ port: service.port }));
process.on("SIGTERM", () => void service[Symbol.asyncDispose]().then(() => process.exit(0)));

/** Creates what the relays act on in one transaction, so a kill leaves all of it or nothing. */
async function seed({ store, sealer, baseUrl, refresh }: Service): Promise<void> {
  await store.write("app", async (tx) => {
    if ((await tx.get("SELECT 1 FROM relay")) !== null) return;
    const environment = await requireEnvironment(tx, LOCAL_APP, "local");
    const at = { environmentId: environment.id, nowMs: clock.now(), by: "command line" };
    const orders = requireCollectionDefinition({
      name: "orders",
      kind: "shared",
      fields: { order: "text", step: "text" },
    });
    await createCollection(tx, environment.id, orders, at.nowMs);
    for (const slug of ["pro", "trial"]) await putAccessSlug(tx, environment.id, { slug }, at.nowMs);
    const smtp = { host: "localhost", port: Number(mailPort), security: "none" } as const;
    const mail = changeMailSettings(environment, { smtp }, sealer, at.nowMs, parseAllowList(allowPrivate));
    await saveSettings(tx, environment, { [MAIL_SECTION]: mail }, environment.version);
    const limits = DEFAULT_LIMITS;
    const context = { environment, actor: COMMAND_LINE, nowMs: at.nowMs, limits, sealer, baseUrl };
    for (const definition of crashRelays(sinkUrl)) {
      await createRelay(tx, context, {
        definition,
        secret: CRASH_SECRET,
        signingSecret: null,
        origin: { kind: "file", synced: false },
      });
    }
    for (const [name, { relay, credits }] of Object.entries(CRASH_PRODUCTS)) {
      await saveProduct(tx, at, name, { credits, soldThrough: { kind: "relay", relay } });
    }
    await savePlan(tx, at, "free", {});
    for (const [name, relay] of Object.entries(CRASH_PLANS)) {
      await savePlan(tx, at, name, { soldThrough: { kind: "relay", relay } });
    }
  });
  refresh();
}

/** Replays each finished event as an owner does, in one transaction. This includes events that are dead because they were cut off too often. */
async function replayAll({ store, refresh }: Service): Promise<void> {
  await store.write("dashboard", async (tx) => {
    const environment = await requireEnvironment(tx, LOCAL_APP, "local");
    const ended = await tx.all<{ id: string }>(`SELECT ${EVENT_ID} AS id FROM event WHERE state IN ('done', 'failed', 'dead')`);
    for (const { id } of ended) {
      const replay = { environmentId: environment.id, id, actor: "command line", nowMs: clock.now() };
      await replayEvent(tx, replay);
    }
  });
  refresh();
}
