/**
 * One change of an environment's settings, all of it in one transaction and one audit row: the hold, the processor's secret, mail,
 * alerts, the collection receipts are mapped to, who may sign in. It keeps secrets sealed and tells the audit their fingerprint alone.
 */
import {
  type Environment,
  findEnvironmentById,
  type KeptProcessorSecret,
  requireVersion,
  saveSettings,
  setHold,
  settingsSection,
} from "../account/environment.ts";
import { isInvitedOnly, SIGNIN_SECTION } from "../client/person-signin.ts";
import type { Json } from "../ground/json.ts";
import { Refusal } from "../ground/refusal.ts";
import {
  changeMailSettings,
  MAIL_SECTION,
  type MailSettingsInput,
  readMailSettings,
  viewMailSettings,
} from "../mail/mail-settings.ts";
import { parseAllowList } from "../outbound/address.ts";
import { keepProcessorSecret } from "../relay/environment-secret.ts";
import { processorSecretContext } from "../relay/relay.ts";
import type { Sealer } from "../secret/seal.ts";
import { readPastedSecret } from "../secret/secret-text.ts";
import { RECEIPTS_SECTION } from "../selling/receipt.ts";
import type { Writer } from "../store/port.ts";
import type { EnvironmentCall } from "./route.ts";

/** What is absent stays as it is. */
interface SettingsInput {
  version: number;
  held?: boolean | undefined;
  /** null removes it. */
  processorSecret?: string | null | undefined;
  mail?: MailSettingsInput | undefined;
  /** Alert codes switched on or off; absent ones stay. */
  alerts?: Record<string, boolean> | undefined;
  receipts?: { collection: string | null } | undefined;
  signin?: { invitedOnly: boolean } | undefined;
}

interface SettingDeps extends Pick<EnvironmentCall, "audit"> {
  nowMs: number;
  sealer: Sealer;
  /** Private mail servers that the operator allows. */
  allowPrivate: readonly string[];
}

/** Makes the change. Refuses with `version_conflict` or `invalid_input`, having written nothing. */
export async function changeSettings(
  tx: Writer,
  environmentId: number,
  input: SettingsInput,
  deps: SettingDeps,
): Promise<Environment> {
  const before = await requireNow(tx, environmentId);
  requireVersion(before, input.version);
  const sections = changeSections(before, input, deps);
  if (Object.keys(sections).length > 0) await saveSettings(tx, before, sections, before.version);
  if (input.held !== undefined) await setHold(tx, before.id, input.held ? deps.nowMs : null);
  if (input.processorSecret !== undefined) {
    const kept =
      input.processorSecret === null ? null : sealProcessorSecret(before, input.processorSecret, deps.sealer);
    await keepProcessorSecret(tx, { environment: before, nowMs: deps.nowMs }, kept);
  }
  const after = await requireNow(tx, before.id);
  await deps.audit(tx, {
    action: "settings.changed",
    target: "settings",
    before: tellSettings(before, input),
    after: tellSettings(after, input),
  });
  return after;
}

function changeSections(
  environment: Environment,
  input: SettingsInput,
  { sealer, allowPrivate, nowMs }: SettingDeps,
): Record<string, Json> {
  const sections: Record<string, Json> = {};
  if (input.mail !== undefined)
    sections[MAIL_SECTION] = changeMailSettings(
      environment,
      input.mail,
      sealer,
      nowMs,
      parseAllowList(allowPrivate),
    );
  if (input.alerts !== undefined)
    sections.alerts = { ...settingsSection(environment, "alerts"), ...input.alerts };
  if (input.receipts !== undefined) {
    const { collection } = input.receipts;
    sections[RECEIPTS_SECTION] = collection === null ? null : { collection };
  }
  if (input.signin !== undefined) sections[SIGNIN_SECTION] = { ...input.signin };
  return sections;
}

function sealProcessorSecret(environment: Environment, value: string, sealer: Sealer): KeptProcessorSecret {
  const { stored } = readPastedSecret({ scheme: "processor" }, value);
  const sealed = sealer.seal(stored, processorSecretContext(environment.id));
  return { sealed, fingerprint: sealer.fingerprint(stored), digest: sealer.digest(stored) };
}

/** What the audit is told of the sections that were changed. */
function tellSettings(environment: Environment, input: SettingsInput): Record<string, unknown> {
  const { heldAt, processorSecretFingerprint } = environment;
  return {
    version: environment.version,
    ...(input.held === undefined ? {} : { held: heldAt !== null }),
    ...(input.processorSecret === undefined ? {} : { processorSecret: processorSecretFingerprint }),
    ...(input.mail === undefined ? {} : { mail: viewMailSettings(readMailSettings(environment)) }),
    ...(input.alerts === undefined ? {} : { alerts: settingsSection(environment, "alerts") }),
    ...(input.signin === undefined ? {} : { signin: { invitedOnly: isInvitedOnly(environment) } }),
    ...(input.receipts === undefined ? {} : { receipts: settingsSection(environment, RECEIPTS_SECTION) }),
  };
}

async function requireNow(tx: Writer, id: number): Promise<Environment> {
  const environment = await findEnvironmentById(tx, id);
  if (environment === null)
    throw new Refusal("not_found", "The environment is gone: it was deleted meanwhile.");
  return environment;
}
