/**
 * An environment's settings: the limits in force, the hold, the processor's secret (write only), mail, alerts, receipts and sign-in. One
 * change is one transaction and one audit row. Secrets are stored sealed, and the audit has only their fingerprint.
 */
import { type Static, type TBoolean, type TOptional, Type } from "typebox";
import { toIso, toIsoOrNull } from "../../base/clock.ts";
import type { Json } from "../../base/json.ts";
import { DEFAULT_LIMITS } from "../../base/limit.ts";
import { Refusal, type Warning } from "../../base/refusal.ts";
import { VERSION } from "../../base/release/version.ts";
import { fields, oneOf, orNull, time, timeOrNull } from "../../base/schema.ts";
import { findApp } from "../../platform/account/app.ts";
import {
  APPROVALS_SECTION,
  ENVIRONMENT_NAMES,
  type Environment,
  findEnvironmentById,
  isAlertEnabled,
  needsSecondPerson,
  readSettingsSection,
  requireVersion,
  type SealedProcessorSecret,
  saveSettings,
  setHold,
} from "../../platform/account/environment.ts";
import { ALERT_CODES, ALERT_MAIL_SWITCH } from "../../platform/audit/alert.ts";
import { type Change, writeAudit } from "../../platform/audit/audit.ts";
import { clearExpiringProblems } from "../../platform/audit/problem.ts";
import {
  changeMailSettings,
  MAIL_SECTION,
  mailSettingsInput,
  mailSettingsView,
  readMailSettings,
  viewMailSettings,
} from "../../platform/mail/mail-settings.ts";
import { findSenderDomain, senderDomainView, viewSenderDomain } from "../../platform/mail/sender-domain.ts";
import { parseAllowList } from "../../platform/outbound/address.ts";
import type { Sealer } from "../../platform/secret/seal.ts";
import { readPastedSecret } from "../../platform/secret/secret-text.ts";
import { findNewestArrival } from "../../shop/people/access-order.ts";
import { isInvitedOnly, SIGNIN_SECTION } from "../../shop/portal/person-signin.ts";
import { listReceiptWarnings, RECEIPTS_SECTION } from "../../shop/selling/receipt.ts";
import type { Reader, Writer } from "../../store/port.ts";
import { processorSecretContext } from "../relay/relay.ts";
import { updateProcessorProblems } from "../relay/relay-problem.ts";
import { storeProcessorSecret } from "../relay/shared-secret.ts";

const CONNECTOR_SECTION = "connector";

/** Reports whether the connector's tools may change anything; on by default. */
export function connectorWrites(environment: Pick<Environment, "settings">): boolean {
  return readSettingsSection(environment, CONNECTOR_SECTION).writes !== false;
}

/** Reports whether the connector may save relays and the catalog; off by default, and never in production. */
export function connectorSaves(environment: Pick<Environment, "name" | "settings">): boolean {
  return (
    environment.name !== "production" && readSettingsSection(environment, CONNECTOR_SECTION).saves === true
  );
}

function showConnector(environment: Pick<Environment, "name" | "settings">) {
  return { writes: connectorWrites(environment), saves: connectorSaves(environment) };
}

const ALERT_SWITCHES = [...ALERT_CODES, ALERT_MAIL_SWITCH] as const;

export const settingsView = Type.Object({
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
  connector: Type.Object({ writes: Type.Boolean(), saves: Type.Boolean() }),
  approvals: Type.Object({ secondPerson: Type.Boolean() }),
});

export type SettingsView = Static<typeof settingsView>;

/** Accepts only known switches, because a misspelled one would switch nothing off. */
const alertsInput = fields(
  Object.fromEntries(ALERT_SWITCHES.map((code) => [code, Type.Optional(Type.Boolean())])) as Record<
    (typeof ALERT_SWITCHES)[number],
    TOptional<TBoolean>
  >,
);

/** A change of settings. An absent field keeps its value. */
export const settingsInput = fields({
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
  approvals: Type.Optional(
    fields({
      secondPerson: Type.Boolean({
        description:
          "true or false: whether relays and the catalog of production change only with the approval of another person than the one who asks",
      }),
    }),
  ),
  connector: Type.Optional(
    fields({
      writes: Type.Optional(
        Type.Boolean({ description: "true or false: whether assistants may replay, pause and resume" }),
      ),
      saves: Type.Optional(
        Type.Boolean({
          description:
            "true or false: whether assistants may also save relays and the catalog; always false in production",
        }),
      ),
    }),
  ),
});
type SettingsInput = Static<typeof settingsInput>;

/** Facts about the server, which no environment stores. */
interface ServerFacts {
  baseUrl: string;
  docsUrl: string;
  mode: "local" | "server";
  limits: Readonly<Record<string, number>>;
}

/** Returns the environment's present settings. */
export async function showSettings(
  tx: Reader,
  environmentId: number,
  { limits, ...server }: ServerFacts,
): Promise<SettingsView> {
  const environment = await requireEnvironment(tx, environmentId);
  const app = await findApp(tx, environment.appId);
  const domain = await findSenderDomain(tx, environment.id);
  const { collection } = readSettingsSection(environment, RECEIPTS_SECTION);
  return {
    app: { id: environment.appId, name: app?.name ?? environment.appId },
    environment: environment.name,
    ...server,
    serviceVersion: VERSION,
    version: environment.version,
    heldAt: toIsoOrNull(environment.heldAt),
    processorSecret: showProcessorSecret(environment),
    limits: { ...DEFAULT_LIMITS, ...limits },
    mail: viewMailSettings(readMailSettings(environment)),
    senderDomain: domain === null ? null : viewSenderDomain(domain),
    alerts: showAlerts(environment),
    receipts: { collection: typeof collection === "string" ? collection : null },
    signin: { invitedOnly: isInvitedOnly(environment) },
    connector: showConnector(environment),
    approvals: { secondPerson: needsSecondPerson(environment) },
  };
}

function showProcessorSecret({ processorSecretFingerprint, processorSecretSetAt }: Environment) {
  if (processorSecretFingerprint === null || processorSecretSetAt === null) return null;
  return { fingerprint: processorSecretFingerprint, setAt: toIso(processorSecretSetAt) };
}

/** Lists every alert code with its switch, and `mail` for whether alerts are mailed. The default is on. */
function showAlerts(environment: Environment): Record<string, boolean> {
  return Object.fromEntries(ALERT_SWITCHES.map((code) => [code, isAlertEnabled(environment, code)]));
}

interface SettingDeps {
  /** Returns the sealer, which only a changed secret needs. */
  sealer: () => Sealer;
  /** Private mail servers that the operator allows. */
  allowPrivate: readonly string[];
}

/** Makes the change and returns the warnings. Throws `version_conflict` or `invalid_input`, and then has written nothing. */
export async function changeSettings(
  tx: Writer,
  change: Change,
  input: SettingsInput,
  deps: SettingDeps,
): Promise<Warning[]> {
  const { nowMs } = change;
  const before = await requireEnvironment(tx, change.environmentId);
  requireVersion(before, input.version);
  const sections = changeSections(before, input, deps, nowMs);
  if (Object.keys(sections).length > 0) await saveSettings(tx, before, sections, before.version);
  if (input.held !== undefined) {
    const newestArrival = await findNewestArrival(tx);
    await setHold(tx, before.id, input.held, { newestArrival, nowMs });
  }
  if (input.held === false) await clearExpiringProblems(tx, before.id, nowMs);
  if (input.processorSecret !== undefined) {
    const kept =
      input.processorSecret === null
        ? null
        : sealProcessorSecret(before, input.processorSecret, deps.sealer());
    await storeProcessorSecret(tx, { environment: before, nowMs }, kept);
    await updateProcessorProblems(tx, before.id, nowMs);
  }
  const after = await requireEnvironment(tx, before.id);
  await writeAudit(tx, {
    ...change,
    action: "settings.changed",
    target: "settings",
    before: describeSettings(before, input),
    after: describeSettings(after, input),
  });
  return input.receipts === undefined ? [] : await listReceiptWarnings(tx, before.id);
}

function changeSections(
  environment: Environment,
  input: SettingsInput,
  { sealer, allowPrivate }: SettingDeps,
  nowMs: number,
): Record<string, Json> {
  const sections: Record<string, Json> = {};
  if (input.mail !== undefined)
    sections[MAIL_SECTION] = changeMailSettings(
      environment,
      input.mail,
      input.mail.smtp == null ? null : sealer(),
      nowMs,
      parseAllowList(allowPrivate),
    );
  if (input.alerts !== undefined)
    sections.alerts = { ...readSettingsSection(environment, "alerts"), ...input.alerts };
  if (input.receipts !== undefined) {
    const { collection } = input.receipts;
    sections[RECEIPTS_SECTION] = collection === null ? null : { collection };
  }
  if (input.signin !== undefined) sections[SIGNIN_SECTION] = { ...input.signin };
  if (input.approvals !== undefined) {
    if (environment.name !== "production")
      throw new Refusal(
        "invalid_input",
        "approvals is a setting of production, because only production has approvals: change it there.",
      );
    sections[APPROVALS_SECTION] = { ...input.approvals };
  }
  if (input.connector !== undefined) {
    if (input.connector.saves === true && environment.name === "production")
      throw new Refusal(
        "invalid_input",
        "connector.saves is always off in production, because an owner approves each change to production. Turn it on in development.",
      );
    sections[CONNECTOR_SECTION] = {
      ...readSettingsSection(environment, CONNECTOR_SECTION),
      ...input.connector,
    };
  }
  return sections;
}

function sealProcessorSecret(environment: Environment, value: string, sealer: Sealer): SealedProcessorSecret {
  const { stored } = readPastedSecret({ scheme: "processor" }, value);
  const sealed = sealer.seal(stored, processorSecretContext(environment.id));
  return { sealed, fingerprint: sealer.fingerprint(stored), digest: sealer.digest(stored) };
}

/** Returns the changed sections for the audit. */
function describeSettings(environment: Environment, input: SettingsInput): Record<string, unknown> {
  const { heldAt, processorSecretFingerprint } = environment;
  return {
    version: environment.version,
    ...(input.held === undefined ? {} : { held: heldAt !== null }),
    ...(input.processorSecret === undefined ? {} : { processorSecret: processorSecretFingerprint }),
    ...(input.mail === undefined ? {} : { mail: viewMailSettings(readMailSettings(environment)) }),
    ...(input.alerts === undefined ? {} : { alerts: readSettingsSection(environment, "alerts") }),
    ...(input.signin === undefined ? {} : { signin: { invitedOnly: isInvitedOnly(environment) } }),
    ...(input.approvals === undefined ? {} : { approvals: { secondPerson: needsSecondPerson(environment) } }),
    ...(input.connector === undefined ? {} : { connector: showConnector(environment) }),
    ...(input.receipts === undefined ? {} : { receipts: readSettingsSection(environment, RECEIPTS_SECTION) }),
  };
}

async function requireEnvironment(tx: Reader, id: number): Promise<Environment> {
  const environment = await findEnvironmentById(tx, id);
  if (environment === null)
    throw new Refusal("not_found", "The environment no longer exists: it was deleted meanwhile.");
  return environment;
}
