/**
 * The OpenID provider that members sign in with, as an owner set it in Settings › Members or with `relay oidc provider`. It is one row of the server,
 * and each change is audited without its secret. The client secret is sealed and never shown. It also says whether passwords still sign in.
 */
import { type Static, Type } from "typebox";
import { Refusal } from "../../base/refusal.ts";
import { fields, oneOf, show, time } from "../../base/schema.ts";
import { breaksOneLine } from "../../base/text.ts";
import type { Reader, Writer } from "../../store/port.ts";
import { bytes, defineTable, flag, integer, json, orNull, type RowOf, text } from "../../store/table.ts";
import { ENVIRONMENT_NAMES } from "../account/environment.ts";
import {
  isOwnerOfEverything,
  membershipView,
  readMemberships,
  viewMembership,
} from "../account/membership.ts";
import { EVERY, type Membership, ROLE_NAMES } from "../account/permission.ts";
import { SERVER_SCOPE, writeAudit } from "../audit/audit.ts";
import type { Sealer } from "../secret/seal.ts";

/** A role that members of a group have. */
interface GroupRole extends Membership {
  /** The group's name in the claim; EVERY: each person whose address is in an allowed domain. */
  group: string;
}

const OIDC_PROVIDER = defineTable({
  name: "oidc_provider",
  key: ["one"],
  columns: {
    one: integer(),
    name: text(),
    issuer: text(),
    clientId: text(),
    clientSecret: orNull(bytes()),
    groupsClaim: text(),
    domains: json<string[]>(),
    trustsEmail: flag(),
    roles: json<GroupRole[]>(),
    passwords: flag(),
    setAt: integer(),
  },
});
type ProviderRow = RowOf<typeof OIDC_PROVIDER>;

const USUAL_NAME = "single sign-on";
const USUAL_GROUPS_CLAIM = "groups";
const MAX_ROLES = 24;
const MAX_DOMAINS = 10;
const MAX_DOMAIN_CHARS = 100;
const MAX_GROUP_CHARS = 100;
const MAX_APP_CHARS = 63;
const SECRET_CONTEXT = "oidc provider: client secret";

const roleView = Type.Object({
  group: Type.String({ description: "the group; * is everyone of an allowed domain" }),
  ...membershipView.properties,
});

export const providerView = Type.Object({
  name: Type.String({ description: "the name on the button of the sign-in page" }),
  issuer: Type.String(),
  clientId: Type.String(),
  hasSecret: Type.Boolean(),
  groupsClaim: Type.String(),
  domains: Type.Array(Type.String()),
  trustsEmail: Type.Boolean({
    description: "true if an address counts as verified although the provider does not say so",
  }),
  roles: Type.Array(roleView),
  passwords: Type.Boolean({ description: "whether members can also sign in with a password" }),
  setAt: time,
});
export type ProviderView = Static<typeof providerView>;

/** A new provider. An absent or empty secret stays, if one is stored for this issuer and client ID. */
export const providerInput = fields({
  name: Type.Optional(
    Type.String({ maxLength: 40, description: `the name on the button; "${USUAL_NAME}" if it is absent` }),
  ),
  issuer: Type.String({
    maxLength: 200,
    description: "the issuer URL of the provider, such as https://id.example.com",
  }),
  clientId: Type.String({ maxLength: 200, description: "the client ID that the provider shows" }),
  clientSecret: Type.Optional(
    Type.String({
      maxLength: 200,
      description: "the client secret, which is never shown again; absent to keep the stored one",
    }),
  ),
  groupsClaim: Type.Optional(
    Type.String({
      maxLength: 100,
      description: `the claim with the groups of a person; ${USUAL_GROUPS_CLAIM} if it is absent`,
    }),
  ),
  domains: Type.Optional(
    Type.Array(Type.String({ maxLength: MAX_DOMAIN_CHARS }), {
      maxItems: MAX_DOMAINS,
      description: "the domains of allowed email addresses; absent or empty allows every domain",
    }),
  ),
  trustsEmail: Type.Optional(
    Type.Boolean({
      description:
        "true if the provider verifies each address although it does not say so with email_verified; false by default",
    }),
  ),
  roles: Type.Array(
    fields({
      group: Type.String({
        minLength: 1,
        maxLength: MAX_GROUP_CHARS,
        description: "a group; * is everyone of an allowed domain",
      }),
      app: Type.Optional(
        Type.String({ maxLength: MAX_APP_CHARS, description: "the app's id; without it, every app" }),
      ),
      environment: Type.Optional(oneOf(ENVIRONMENT_NAMES)),
      role: oneOf(ROLE_NAMES),
      payloads: Type.Optional(
        Type.Boolean({ description: "whether they see the values of payloads; false by default" }),
      ),
    }),
    { maxItems: MAX_ROLES, description: "the roles that groups give, each in an app and an environment" },
  ),
});
export type ProviderInput = Static<typeof providerInput>;

/** The provider with its open secret. */
export interface Provider extends Omit<ProviderRow, "one" | "clientSecret"> {
  clientSecret: string | null;
}

/** Returns the provider with its secret, or null if none is set. Throws if another master key sealed the secret. */
export async function openProvider(tx: Reader, sealer: Sealer): Promise<Provider | null> {
  const row = await OIDC_PROVIDER.find(tx, { one: 1 });
  if (row === null) return null;
  const { one: _, clientSecret, ...rest } = row;
  return {
    ...rest,
    clientSecret: clientSecret === null ? null : sealer.unseal(clientSecret, SECRET_CONTEXT),
  };
}

/** Returns the provider with its secret. Throws `oidc_not_set` without one. */
export async function requireProvider(tx: Reader, sealer: Sealer): Promise<Provider> {
  const provider = await openProvider(tx, sealer);
  if (provider === null) throw rejectNotSet();
  return provider;
}

/** Returns the provider without its secret, or null if none is set. */
export async function findProvider(tx: Reader): Promise<Provider | null> {
  const row = await OIDC_PROVIDER.find(tx, { one: 1 });
  if (row === null) return null;
  const { one: _, clientSecret: __, ...rest } = row;
  return { ...rest, clientSecret: null };
}

/** Formats the provider for the API, without its secret; null if none is set. */
export async function viewProvider(tx: Reader): Promise<ProviderView | null> {
  const row = await OIDC_PROVIDER.find(tx, { one: 1 });
  if (row === null) return null;
  return show(providerView, {
    ...row,
    hasSecret: row.clientSecret !== null,
    roles: row.roles.map((one) => ({ group: one.group, ...viewMembership(one) })),
  });
}

/** Returns the name of the provider, and whether passwords sign in. Without a provider they always do. */
export async function findSigninWays(tx: Reader): Promise<{ provider: string | null; passwords: boolean }> {
  const row = await OIDC_PROVIDER.find(tx, { one: 1 });
  return row === null
    ? { provider: null, passwords: true }
    : { provider: row.name, passwords: row.passwords };
}

/** Throws `password_signin_off` if members sign in only at the provider, and with no password or passkey. */
export async function requirePasswordSignin(tx: Reader): Promise<void> {
  const { passwords, provider } = await findSigninWays(tx);
  if (passwords) return;
  throw new Refusal(
    "password_signin_off",
    `This server takes no password and no passkey: sign in with ${provider}. If it is not available, an owner allows passwords with relay oidc passwords on.`,
  );
}

interface ProviderChange {
  nowMs: number;
  by: string;
}

/**
 * Stores the provider, audited. With another issuer, passwords sign in again, because no owner has signed in there yet. Throws `invalid_input`.
 */
export async function changeProvider(
  tx: Writer,
  { sealer, ...change }: ProviderChange & { sealer: Sealer },
  input: ProviderInput,
): Promise<void> {
  const before = await OIDC_PROVIDER.find(tx, { one: 1 });
  const issuer = readIssuer(input.issuer);
  const clientId = readLine("clientId", input.clientId);
  const isSameClient = before?.issuer === issuer && before.clientId === clientId;
  const secret = input.clientSecret?.trim() ?? "";
  const sealed = secret === "" ? null : sealer.seal(readLine("clientSecret", secret), SECRET_CONTEXT);
  const domains = [...new Set((input.domains ?? []).map(readDomain))];
  const row: ProviderRow = {
    one: 1,
    name: readLine("name", input.name?.trim() || USUAL_NAME),
    issuer,
    clientId,
    clientSecret: sealed ?? (isSameClient ? before.clientSecret : null),
    groupsClaim: readLine("groupsClaim", input.groupsClaim?.trim() || USUAL_GROUPS_CLAIM),
    domains,
    trustsEmail: input.trustsEmail ?? false,
    roles: input.roles.map((given, at) => readRole(given, at, domains)),
    passwords: before?.issuer === issuer ? before.passwords : true,
    setAt: change.nowMs,
  };
  if (before === null) await OIDC_PROVIDER.insert(tx, row);
  else await OIDC_PROVIDER.update(tx, row);
  const after = { ...auditOf(row), secretChanged: sealed !== null };
  await audit(tx, change, "oidc.provider_set", before === null ? null : auditOf(before), after);
}

/** Removes the provider, audited. Members that it created stay, and passwords sign in again. */
export async function removeProvider(tx: Writer, change: ProviderChange): Promise<void> {
  const before = await OIDC_PROVIDER.find(tx, { one: 1 });
  if (before === null) return;
  await OIDC_PROVIDER.delete(tx, { one: 1 });
  await audit(tx, change, "oidc.provider_removed", auditOf(before), null);
}

/**
 * Switches sign-in with passwords on or off, audited. Off ends every session that did not begin at the provider, also that of the person who
 * switches. Returns how many ended. Throws `oidc_not_set` without a provider, and `in_use` for off until an owner of everything has signed in at the
 * provider.
 */
export async function setPasswordSignin(
  tx: Writer,
  change: ProviderChange,
  passwords: boolean,
): Promise<number> {
  const before = await OIDC_PROVIDER.find(tx, { one: 1 });
  if (before === null) throw rejectNotSet();
  if (before.passwords === passwords) return 0;
  if (!passwords && !(await hasLinkedOwner(tx, before.issuer)))
    throw new Refusal(
      "in_use",
      `No owner of everything has signed in with ${before.name} yet, so this would lock every owner out: sign in with it once, then switch passwords off.`,
    );
  await OIDC_PROVIDER.update(tx, { ...before, passwords });
  const others =
    "DELETE FROM session WHERE id NOT IN (SELECT session_id FROM oidc_session WHERE issuer = ?1)";
  const sessionsEnded = passwords ? 0 : await tx.run(others, before.issuer);
  const after = { passwords, sessionsEnded };
  await audit(tx, change, "oidc.passwords_changed", { passwords: before.passwords }, after);
  return sessionsEnded;
}

async function hasLinkedOwner(tx: Reader, issuer: string): Promise<boolean> {
  const rows = await tx.all<{ ownerId: string }>(
    "SELECT DISTINCT owner_id AS ownerId FROM oidc_identity WHERE issuer = ?1",
    issuer,
  );
  for (const { ownerId } of rows) if (await isOwnerOfEverything(tx, ownerId)) return true;
  return false;
}

/** Returns the refusal of a sign-in without a provider. */
function rejectNotSet(): Refusal {
  return new Refusal(
    "oidc_not_set",
    "This server has no OpenID provider: sign in with a password, or set a provider under Settings › Members or with relay oidc provider.",
  );
}

function auditOf({ one: _, clientSecret, setAt: __, roles, ...rest }: ProviderRow) {
  return {
    ...rest,
    hasSecret: clientSecret !== null,
    roles: roles.map((one) => ({ group: one.group, ...viewMembership(one) })),
  };
}

async function audit(
  tx: Writer,
  { nowMs, by }: ProviderChange,
  action: "oidc.provider_set" | "oidc.provider_removed" | "oidc.passwords_changed",
  before: object | null,
  after: object | null,
): Promise<void> {
  await writeAudit(tx, { environmentId: SERVER_SCOPE, nowMs, by, action, target: "server", before, after });
}

const LOOPBACK = /^(localhost|127(\.\d+){3}|\[::1\])$/;

/** Returns the issuer URL in one form. Throws `invalid_input`. */
function readIssuer(given: string): string {
  const url = URL.parse(given.trim());
  const isUrl =
    url !== null && url.username === "" && url.password === "" && url.search === "" && url.hash === "";
  const isSafe = url?.protocol === "https:" || (url?.protocol === "http:" && LOOPBACK.test(url.hostname));
  if (isUrl && isSafe) return url.pathname === "/" ? url.origin : url.href;
  throw new Refusal(
    "invalid_input",
    "`issuer` is not the issuer URL of a provider: write an https URL such as https://id.example.com, without a query. Only a provider on this machine can use http.",
  );
}

const DOMAIN = /^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z0-9-]{2,63}$/;

function readDomain(given: string): string {
  const domain = given.trim().replace(/^@/, "").toLowerCase();
  if (DOMAIN.test(domain)) return domain;
  throw new Refusal(
    "invalid_input",
    "`domains` contains a text that is no domain: write each as example.com, without a wildcard.",
  );
}

function readRole(given: ProviderInput["roles"][number], at: number, domains: readonly string[]): GroupRole {
  const group = readLine(`roles[${at}].group`, given.group);
  if (group === EVERY && domains.length === 0)
    throw new Refusal(
      "invalid_input",
      `\`roles[${at}].group\` is *, which is everyone of an allowed domain, and \`domains\` is empty: name a domain, or a group.`,
    );
  const [membership] = readMemberships([given]);
  if (membership === undefined) throw new Error("No membership was read.");
  return { group, ...membership };
}

function readLine(name: string, given: string): string {
  const line = given.trim();
  if (line !== "" && breaksOneLine(line) === null) return line;
  throw new Refusal(
    "invalid_input",
    `\`${name}\` is empty or contains control characters: write one line of text.`,
  );
}
