/**
 * Memberships: the roles of a person who signs in, each in an app and an environment. A member gives them, or the person's groups at the OpenID
 * provider do. The last owner of everything keeps that role.
 */
import { Type } from "typebox";
import { Refusal } from "../../base/refusal.ts";
import { fields, oneOf } from "../../base/schema.ts";
import type { Reader, Writer } from "../../store/port.ts";
import { defineTable, flag, integer, type RowOf, text } from "../../store/table.ts";
import { findApp } from "./app.ts";
import { ENVIRONMENT_NAMES, findEnvironment } from "./environment.ts";
import {
  EVERY,
  type Membership,
  type Permission,
  type Place,
  permissionsIn,
  ROLE_NAMES,
  type Role,
} from "./permission.ts";

const MEMBERSHIP = defineTable({
  name: "membership",
  key: ["ownerId", "appId", "environment"],
  columns: {
    ownerId: text(),
    /** The app, or EVERY. */
    appId: text(),
    /** The name of the environment, or EVERY. */
    environment: text(),
    role: text<Role>(),
    payloads: flag(),
    createdAt: integer(),
  },
});

/** Roles of groups. Several groups can give roles in one place. */
const GROUP_MEMBERSHIP = defineTable({
  name: "group_membership",
  key: ["ownerId", "appId", "environment", "role"],
  columns: {
    ownerId: text(),
    appId: text(),
    environment: text(),
    role: text<Role>(),
    payloads: flag(),
    createdAt: integer(),
  },
});

/** The most memberships of one person. */
const MAX_MEMBERSHIPS = 16;
const MAX_APP_CHARS = 63;

export const membershipView = Type.Object({
  app: Type.String({ description: "the app's id; * is every app" }),
  environment: oneOf([...ENVIRONMENT_NAMES, EVERY]),
  role: oneOf(ROLE_NAMES),
  payloads: Type.Boolean({ description: "true if the member sees the values of payloads" }),
});

/** Memberships as a caller sends them. */
export const membershipsInput = Type.Array(
  fields({
    app: Type.Optional(
      Type.String({ maxLength: MAX_APP_CHARS, description: "the app's id; without it, every app" }),
    ),
    environment: Type.Optional(oneOf(ENVIRONMENT_NAMES)),
    role: oneOf(ROLE_NAMES),
    payloads: Type.Optional(
      Type.Boolean({ description: "whether the member sees the values of payloads; false by default" }),
    ),
  }),
  {
    minItems: 1,
    maxItems: MAX_MEMBERSHIPS,
    description: "the roles of the member, each in an app and an environment; without a place, everywhere",
  },
);

/** The role of an owner of everything. */
export const FULL_OWNER: readonly Membership[] = [
  { appId: EVERY, name: EVERY, role: "owner", payloads: true },
];

type Row = RowOf<typeof MEMBERSHIP>;

function toMembership({ appId, environment, role, payloads }: Row): Membership {
  return { appId, name: environment, role, payloads };
}

export function viewMembership({ appId, name, role, payloads }: Membership) {
  return {
    app: appId,
    environment: name as (typeof ENVIRONMENT_NAMES)[number] | typeof EVERY,
    role,
    payloads,
  };
}

/** Reads what a caller sent. An owner always sees payloads. */
export function readMemberships(
  given: readonly { app?: string; environment?: string; role: Role; payloads?: boolean }[],
): Membership[] {
  return given.map(({ app = EVERY, environment = EVERY, role, payloads = false }) => ({
    appId: app,
    name: environment,
    role,
    payloads: payloads || role === "owner",
  }));
}

/** Lists the person's memberships: first those that a member gave, the widest first. */
export async function listMemberships(tx: Reader, ownerId: string): Promise<Membership[]> {
  return [...(await listGivenMemberships(tx, ownerId)), ...(await listGroupMemberships(tx, ownerId))];
}

/** Lists the memberships that a member gave. */
export async function listGivenMemberships(tx: Reader, ownerId: string): Promise<Membership[]> {
  const where = "WHERE owner_id = $ownerId ORDER BY app_id, environment";
  return (await MEMBERSHIP.all(tx, where, { ownerId })).map(toMembership);
}

/** Lists the memberships that the person's groups give. */
async function listGroupMemberships(tx: Reader, ownerId: string): Promise<Membership[]> {
  const where = "WHERE owner_id = $ownerId ORDER BY app_id, environment, role";
  return (await GROUP_MEMBERSHIP.all(tx, where, { ownerId })).map(toMembership);
}

type ByPerson = Map<string, Membership[]>;

/** Lists the memberships of every person by the person's id: those that a member gave, and those that groups give. */
export async function listMembershipsBySource(tx: Reader): Promise<{ given: ByPerson; groups: ByPerson }> {
  const given = await MEMBERSHIP.all(tx, "ORDER BY owner_id, app_id, environment");
  const groups = await GROUP_MEMBERSHIP.all(tx, "ORDER BY owner_id, app_id, environment, role");
  return { given: groupByPerson(given), groups: groupByPerson(groups) };
}

function groupByPerson(rows: readonly Row[]): ByPerson {
  const byPerson = Map.groupBy(rows, ({ ownerId }) => ownerId);
  return new Map([...byPerson].map(([ownerId, own]) => [ownerId, own.map(toMembership)]));
}

/** Lists the memberships of every person, by the person's id. */
async function listAllMemberships(tx: Reader): Promise<ByPerson> {
  const { given, groups } = await listMembershipsBySource(tx);
  for (const [ownerId, own] of groups) given.set(ownerId, [...(given.get(ownerId) ?? []), ...own]);
  return given;
}

/**
 * Replaces the memberships that a member gave the person. Throws `invalid_input` (an unknown place, or one that occurs twice) and `in_use` (the last owner of
 * everything would lose that role).
 */
export async function setMemberships(
  tx: Writer,
  ownerId: string,
  memberships: readonly Membership[],
  nowMs: number,
): Promise<void> {
  const seen = new Set<string>();
  for (const one of memberships) {
    if (!(await isPlace(tx, one))) throw rejectPlace(one);
    const place = `${one.appId}/${one.name}`;
    if (seen.has(place))
      throw new Refusal(
        "invalid_input",
        `memberships names ${place} twice: give one role for each app and environment.`,
      );
    seen.add(place);
  }
  const remaining = [...memberships, ...(await listGroupMemberships(tx, ownerId))];
  if (!remaining.some(isFullOwner)) await requireOtherOwner(tx, ownerId);
  await tx.run("DELETE FROM membership WHERE owner_id = ?1", ownerId);
  for (const { appId, name, role, payloads } of memberships) {
    const row = { ownerId, appId, environment: name, role, payloads, createdAt: nowMs };
    await MEMBERSHIP.insert(tx, row);
  }
}

/**
 * Replaces the memberships that the person's groups give. A place that does not exist any more is left out. The last owner of everything stays one.
 * Returns the memberships before and after.
 */
export async function setGroupMemberships(
  tx: Writer,
  ownerId: string,
  memberships: readonly Membership[],
  nowMs: number,
): Promise<{ before: Membership[]; after: Membership[] }> {
  const before = await listGroupMemberships(tx, ownerId);
  const after = new Map<string, Membership>();
  const add = (one: Membership): void => {
    const key = `${one.appId}/${one.name}/${one.role}`;
    const payloads = one.payloads || (after.get(key)?.payloads ?? false);
    after.set(key, { ...one, payloads });
  };
  for (const one of memberships) if (await isPlace(tx, one)) add(one);
  const remaining = [...after.values(), ...(await listGivenMemberships(tx, ownerId))];
  if (!remaining.some(isFullOwner) && !(await hasOtherOwner(tx, ownerId))) FULL_OWNER.forEach(add);
  await tx.run("DELETE FROM group_membership WHERE owner_id = ?1", ownerId);
  for (const { appId, name, role, payloads } of after.values())
    await GROUP_MEMBERSHIP.insert(tx, {
      ownerId,
      appId,
      environment: name,
      role,
      payloads,
      createdAt: nowMs,
    });
  return { before, after: await listGroupMemberships(tx, ownerId) };
}

async function isPlace(tx: Reader, { appId, name }: Place): Promise<boolean> {
  if (appId === EVERY) return true;
  return name === EVERY
    ? (await findApp(tx, appId)) !== null
    : (await findEnvironment(tx, appId, name)) !== null;
}

function rejectPlace({ appId, name }: Place): Refusal {
  return new Refusal(
    "invalid_input",
    `memberships names ${name === EVERY ? appId : `${appId}/${name}`}, which does not exist: relay apps list shows the apps.`,
  );
}

function isFullOwner({ appId, name, role }: Membership): boolean {
  return appId === EVERY && name === EVERY && role === "owner";
}

/** Reports whether the person is an owner of everything. */
export async function isOwnerOfEverything(tx: Reader, ownerId: string): Promise<boolean> {
  return (await listMemberships(tx, ownerId)).some(isFullOwner);
}

/** Reports whether the person is no owner of everything, or another person is one too. */
async function hasOtherOwner(tx: Reader, ownerId: string): Promise<boolean> {
  const all = await listAllMemberships(tx);
  const isOwner = (of: readonly Membership[] | undefined): boolean => of?.some(isFullOwner) ?? false;
  if (!isOwner(all.get(ownerId))) return true;
  return [...all].some(([id, of]) => id !== ownerId && isOwner(of));
}

/** Throws `in_use` if no other person is an owner of everything. */
export async function requireOtherOwner(tx: Reader, ownerId: string): Promise<void> {
  if (await hasOtherOwner(tx, ownerId)) return;
  throw new Refusal(
    "in_use",
    "This person is the last owner of everything, and no other person could manage the server: make another person an owner first.",
  );
}

/** Lists the email addresses of those who have the permission in the place, oldest first. */
export async function listAddresses(tx: Reader, permission: Permission, place: Place): Promise<string[]> {
  const people = await tx.all<{ id: string; email: string }>(
    "SELECT id, email FROM owner ORDER BY created_at, id",
  );
  const all = await listAllMemberships(tx);
  return people
    .filter(({ id }) => permissionsIn(all.get(id) ?? [], place).has(permission))
    .map(({ email }) => email);
}

/** Deletes the memberships of a deleted app. */
export async function deleteMembershipsOfApp(tx: Writer, appId: string): Promise<void> {
  await tx.run("DELETE FROM membership WHERE app_id = ?1", appId);
  await tx.run("DELETE FROM group_membership WHERE app_id = ?1", appId);
}
