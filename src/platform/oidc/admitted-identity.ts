/**
 * Decides which member an identity of the provider is, and what the member may do. The first sign-in links the identity to the member with its verified
 * address, or creates a member if a group or a domain gives a role. From then on only issuer and subject count. The roles of groups follow each sign-in.
 */
import { MAX_EMAIL_CHARS } from "../../base/limit.ts";
import { breaksOneLine } from "../../base/text.ts";
import type { Reader, Writer } from "../../store/port.ts";
import { bytes, defineTable, integer, orNull, text } from "../../store/table.ts";
import { listMemberships, setGroupMemberships, viewMembership } from "../account/membership.ts";
import { createOwner, findOwnerByEmail, findOwnerById, type Owner } from "../account/owner.ts";
import { EVERY, type Membership } from "../account/permission.ts";
import { endSigninLinks } from "../account/session.ts";
import type { Sealer } from "../secret/seal.ts";
import type { Provider } from "./provider.ts";

const OIDC_IDENTITY = defineTable({
  name: "oidc_identity",
  key: ["issuer", "subject"],
  columns: { issuer: text(), subject: text(), ownerId: text(), linkedAt: integer() },
});

const OIDC_SESSION = defineTable({
  name: "oidc_session",
  key: ["sessionId"],
  columns: { sessionId: text(), issuer: text(), idToken: orNull(bytes()) },
});

const EMAIL = /^[^\s@]+@[^\s@]+$/;
/** The longest subject that OpenID Connect allows. */
const MAX_SUBJECT_CHARS = 255;
const MAX_GROUPS = 1_000;
/** The longest ID token that ends a session at the provider: longer ones do not fit into a URL. */
const MAX_HINT_CHARS = 4_000;

/** A person as the provider describes them. */
export interface Identity {
  subject: string;
  email: string | null;
  isEmailVerified: boolean;
  groups: readonly string[];
}

type RefusedWhy =
  | "no_email"
  | "email_not_verified"
  | "domain_not_allowed"
  | "no_role"
  | "linked_to_another"
  | "subject_not_valid";

/** The member of an identity, or why it may not sign in. Roles that groups no longer give are removed in both cases. */
export type Admittance = {
  /** The roles of groups before and after, if they changed. */
  roles: { before: ReturnType<typeof viewMembership>[]; after: ReturnType<typeof viewMembership>[] } | null;
} & (
  | { owner: Owner; how: "known" | "linked" | "created" }
  | { refused: { why: RefusedWhy; message: string; email: string | null } }
);

/** Reads the claims of the ID token and of the user info. */
export function readIdentity(claims: Readonly<Record<string, unknown>>, provider: Provider): Identity {
  const { sub, email } = claims;
  const groups = claims[provider.groupsClaim];
  const list: readonly unknown[] = Array.isArray(groups) ? groups.slice(0, MAX_GROUPS) : [groups];
  const isEmail =
    typeof email === "string" &&
    email.length <= MAX_EMAIL_CHARS &&
    EMAIL.test(email) &&
    breaksOneLine(email) === null;
  return {
    subject: typeof sub === "string" ? sub : "",
    email: isEmail ? email : null,
    // Some providers send the text "true".
    isEmailVerified:
      provider.trustsEmail || claims["email_verified"] === true || claims["email_verified"] === "true",
    groups: list.filter((one): one is string => typeof one === "string"),
  };
}

/** Returns the roles that the groups and the domain of an identity give. */
function rolesOfIdentity(provider: Provider, { groups }: Pick<Identity, "groups">): Membership[] {
  const has = new Set(groups);
  return provider.roles
    .filter(({ group }) => (group === EVERY ? provider.domains.length > 0 : has.has(group)))
    .map(({ appId, name, role, payloads }) => ({ appId, name, role, payloads }));
}

/** Returns the id of the member that an identity is linked to, or null. */
export async function findLinkedMember(
  tx: Reader,
  { issuer }: Pick<Provider, "issuer">,
  subject: string,
): Promise<string | null> {
  return (await OIDC_IDENTITY.find(tx, { issuer, subject }))?.ownerId ?? null;
}

/**
 * Unlinks a member from their accounts at providers and ends the sessions that began there, so that the next sign-in links by the address again.
 * Returns how many accounts were linked.
 */
export async function unlinkMember(tx: Writer, ownerId: string): Promise<number> {
  const sessions = "DELETE FROM session WHERE owner_id = ?1 AND id IN (SELECT session_id FROM oidc_session)";
  await tx.run(sessions, ownerId);
  return await tx.run("DELETE FROM oidc_identity WHERE owner_id = ?1", ownerId);
}

/** Finds, links or creates the member of an identity, and sets the roles of its groups. */
export async function admitIdentity(
  tx: Writer,
  provider: Provider,
  identity: Identity,
  nowMs: number,
): Promise<Admittance> {
  const { subject, email } = identity;
  const { issuer } = provider;
  const reject = (why: RefusedWhy, message: string): Admittance => ({
    roles: null,
    refused: { why, message, email },
  });
  if (subject === "" || subject.length > MAX_SUBJECT_CHARS || breaksOneLine(subject) !== null)
    return reject("subject_not_valid", `${provider.name} sent no valid subject: ask its administrator.`);
  const known = await OIDC_IDENTITY.find(tx, { issuer, subject });
  const needsEmail = known === null || provider.domains.length > 0;
  const denied = needsEmail ? denyEmail(provider, identity) : null;
  if (denied !== null) {
    const isOut = known !== null && denied.why === "domain_not_allowed";
    const roles = isOut ? await changeRoles(tx, known.ownerId, [], nowMs) : null;
    return { roles, refused: { ...denied, email } };
  }
  const owner =
    known === null ? await findOwnerByEmail(tx, email ?? "") : await findOwnerById(tx, known.ownerId);
  if (known === null && owner !== null && (await isLinked(tx, owner.id, issuer)))
    return reject(
      "linked_to_another",
      `${email} is already linked to another account of ${provider.name}: ask an owner to unlink it under Settings › Members, or with relay members unlink.`,
    );
  const wanted = rolesOfIdentity(provider, identity);
  const withoutRole = {
    why: "no_role" as const,
    message: `No group of yours at ${provider.name} gives a role on this server: ask an owner for one.`,
    email,
  };
  if (owner === null) {
    if (wanted.length === 0) return { roles: null, refused: withoutRole };
    const made = await createOwner(tx, { email: email ?? "", passwordHash: null, memberships: [], nowMs });
    const { after } = await setGroupMemberships(tx, made.id, wanted, nowMs);
    await OIDC_IDENTITY.insert(tx, { issuer, subject, ownerId: made.id, linkedAt: nowMs });
    return { owner: made, how: "created", roles: { before: [], after: after.map(viewMembership) } };
  }
  const roles = await changeRoles(tx, owner.id, wanted, nowMs);
  if ((await listMemberships(tx, owner.id)).length === 0) return { roles, refused: withoutRole };
  if (known === null) {
    await OIDC_IDENTITY.insert(tx, { issuer, subject, ownerId: owner.id, linkedAt: nowMs });
    // The invitation is accepted, so its link must not set a password.
    await endSigninLinks(tx, owner.id, nowMs);
  }
  const { id, createdAt } = owner;
  return {
    owner: { id, email: owner.email, createdAt },
    how: known === null ? "linked" : "known",
    roles,
  };
}

/** Returns why the address may not sign in; null if it may. */
function denyEmail(
  { name, domains }: Provider,
  { email, isEmailVerified }: Identity,
): { why: RefusedWhy; message: string } | null {
  if (email === null)
    return {
      why: "no_email",
      message: `${name} sent no email address of yours: let it send the claim email, then sign in again.`,
    };
  if (!isEmailVerified)
    return {
      why: "email_not_verified",
      message: `${name} has not verified your email address ${email}: verify it there, then sign in again.`,
    };
  const domain = email.slice(email.lastIndexOf("@") + 1).toLowerCase();
  if (domains.length === 0 || domains.includes(domain)) return null;
  return {
    why: "domain_not_allowed",
    message: `Addresses of ${domain} may not sign in on this server: use an address of ${domains.join(" or ")}.`,
  };
}

async function isLinked(tx: Reader, ownerId: string, issuer: string): Promise<boolean> {
  const where = "WHERE owner_id = $ownerId AND issuer = $issuer";
  return (await OIDC_IDENTITY.get(tx, where, { ownerId, issuer })) !== null;
}

async function changeRoles(
  tx: Writer,
  ownerId: string,
  wanted: readonly Membership[],
  nowMs: number,
): Promise<Admittance["roles"]> {
  const changed = await setGroupMemberships(tx, ownerId, wanted, nowMs);
  const [before, after] = [changed.before.map(viewMembership), changed.after.map(viewMembership)];
  return Bun.deepEquals(before, after) ? null : { before, after };
}

const idTokenContext = (sessionId: string): string => `oidc session ${sessionId}`;

/** Records that a session began at the provider. Its ID token ends the session there too. */
export async function recordProviderSession(
  tx: Writer,
  sealer: Sealer,
  { sessionId, issuer, idToken }: { sessionId: string; issuer: string; idToken: string },
): Promise<void> {
  const isShort = idToken.length <= MAX_HINT_CHARS;
  const sealed = isShort ? sealer.seal(idToken, idTokenContext(sessionId)) : null;
  const onConflict =
    "ON CONFLICT (session_id) DO UPDATE SET issuer = excluded.issuer, id_token = excluded.id_token";
  await OIDC_SESSION.insert(tx, { sessionId, issuer, idToken: sealed }, onConflict);
}

/** Finds the ID token of a session that began at the provider. Null if it began otherwise; `idToken` is null if it was too long. */
export async function findProviderSession(
  tx: Reader,
  sealer: Sealer,
  sessionId: string,
): Promise<{ issuer: string; idToken: string | null } | null> {
  const row = await OIDC_SESSION.find(tx, { sessionId });
  if (row === null) return null;
  const { issuer, idToken } = row;
  return { issuer, idToken: idToken === null ? null : sealer.unseal(idToken, idTokenContext(sessionId)) };
}

/** Reports whether a session began at the provider that is set now. */
export async function isProviderSession(tx: Reader, sessionId: string): Promise<boolean> {
  const sql = `SELECT 1 AS found FROM oidc_session JOIN oidc_provider ON oidc_provider.issuer = oidc_session.issuer WHERE session_id = ?1`;
  return (await tx.get(sql, sessionId)) !== null;
}
