/** An environment's settings: what it is, the caps in force, the hold, the processor's secret (write only), mail, alerts. */
import { type Static, type TBoolean, type TOptional, Type } from "typebox";
import { findApp } from "../account/app.ts";
import {
  alertOn,
  ENVIRONMENT_NAMES,
  type Environment,
  findEnvironmentById,
  settingsSection,
} from "../account/environment.ts";
import { isInvitedOnly } from "../client/person-signin.ts";
import { toIso, toIsoOrNull } from "../ground/clock.ts";
import { DEFAULT_LIMITS } from "../ground/limit.ts";
import { fields, oneOf, orNull, time, timeOrNull } from "../ground/schema.ts";
import {
  mailSettingsInput,
  mailSettingsView,
  readMailSettings,
  viewMailSettings,
} from "../mail/mail-settings.ts";
import { findSenderDomain, senderDomainView, viewSenderDomain } from "../mail/sender-domain.ts";
import { VERSION } from "../release/change.ts";
import { RECEIPTS_SECTION } from "../selling/receipt.ts";
import type { Reader } from "../store/port.ts";
import { ALERT_CODES, ALERT_MAIL_SWITCH } from "../watch/alert.ts";
import { docsUrl } from "./answer.ts";
import type { HttpDeps } from "./deps.ts";
import { environmentRoute } from "./route.ts";
import { changeSettings } from "./setting-change.ts";

const ALERT_SWITCHES = [...ALERT_CODES, ALERT_MAIL_SWITCH] as const;

const settings = Type.Object({
  app: Type.Object({ id: Type.String(), name: Type.String() }),
  environment: oneOf(ENVIRONMENT_NAMES),
  baseUrl: Type.String(),
  docsUrl: Type.String(),
  mode: oneOf(["local", "server"]),
  serviceVersion: Type.String(),
  version: Type.Integer(),
  heldAt: timeOrNull,
  processorSecret: orNull(Type.Object({ fingerprint: Type.String(), setAt: time })),
  limits: Type.Record(Type.String(), Type.Integer()),
  mail: mailSettingsView,
  senderDomain: orNull(senderDomainView),
  alerts: Type.Record(Type.String(), Type.Boolean()),
  receipts: Type.Object({ collection: orNull(Type.String()) }),
  signin: Type.Object({ invitedOnly: Type.Boolean() }),
});

export type SettingsView = Static<typeof settings>;

/** Every switch there is, and no other: one that was misspelled would switch nothing off. */
const alertsInput = fields(
  Object.fromEntries(ALERT_SWITCHES.map((code) => [code, Type.Optional(Type.Boolean())])) as Record<
    (typeof ALERT_SWITCHES)[number],
    TOptional<TBoolean>
  >,
);

async function showSettings(tx: Reader, deps: HttpDeps, environment: Environment) {
  const app = await findApp(tx, environment.appId);
  const domain = await findSenderDomain(tx, environment.id);
  const { collection } = settingsSection(environment, RECEIPTS_SECTION);
  return {
    app: { id: environment.appId, name: app?.name ?? environment.appId },
    environment: environment.name,
    baseUrl: deps.baseUrl(),
    docsUrl: docsUrl(deps),
    mode: deps.config.mode,
    serviceVersion: VERSION,
    version: environment.version,
    heldAt: toIsoOrNull(environment.heldAt),
    processorSecret: showProcessorSecret(environment),
    limits: { ...DEFAULT_LIMITS, ...deps.config.limits },
    mail: viewMailSettings(readMailSettings(environment)),
    senderDomain: domain === null ? null : viewSenderDomain(domain),
    alerts: showAlerts(environment),
    receipts: { collection: typeof collection === "string" ? collection : null },
    signin: { invitedOnly: isInvitedOnly(environment) },
  };
}

function showProcessorSecret({ processorSecretFingerprint, processorSecretSetAt }: Environment) {
  if (processorSecretFingerprint === null || processorSecretSetAt === null) return null;
  return { fingerprint: processorSecretFingerprint, setAt: toIso(processorSecretSetAt) };
}

/** Every alert code with its switch, and `mail`, whether they are mailed; one never touched is on. */
function showAlerts(environment: Environment): Record<string, boolean> {
  return Object.fromEntries(ALERT_SWITCHES.map((code) => [code, alertOn(environment, code)]));
}

export const settingRoutes = [
  environmentRoute({
    method: "GET",
    path: "/settings",
    summary: "Shows the environment's settings and the caps in force; no secret is ever shown.",
    answer: Type.Object({ settings }),
    async handle({ deps, environment }) {
      return await deps.store.read(async (tx) => {
        const present = (await findEnvironmentById(tx, environment.id)) ?? environment;
        return { settings: await showSettings(tx, deps, present) };
      });
    },
  }),
  environmentRoute({
    method: "PUT",
    path: "/settings",
    summary:
      "Changes settings read at the given version: hold, processor secret, mail, alerts, who signs in; what is absent stays.",
    body: fields({
      version: Type.Integer({ description: "the version you read, an integer" }),
      held: Type.Optional(Type.Boolean()),
      processorSecret: Type.Optional(orNull(Type.String({ description: "the processor's secret, or null" }))),
      mail: Type.Optional(mailSettingsInput),
      alerts: Type.Optional(alertsInput),
      receipts: Type.Optional(fields({ collection: orNull(Type.String()) })),
      signin: Type.Optional(
        fields({
          invitedOnly: Type.Boolean({
            description: "true or false: whether only people who exist may sign in",
          }),
        }),
      ),
    }),
    answer: Type.Object({ settings }),
    async handle({ deps, environment, origin, audit, body, nowMs }) {
      const shown = await deps.store.write(origin, async (tx) => {
        const after = await changeSettings(tx, environment.id, body, {
          sealer: deps.sealer,
          allowPrivate: deps.config.allowPrivate,
          audit,
          nowMs,
        });
        return { settings: await showSettings(tx, deps, after) };
      });
      return shown;
    },
  }),
];
