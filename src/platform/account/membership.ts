/** Memberships: the roles of a person who signs in, each in an app and an environment. The last owner of everything keeps that role. */
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

/** Lists the person's memberships, the widest first. */
export async function listMemberships(tx: Reader, ownerId: string): Promise<Membership[]> {
  const rows = await MEMBERSHIP.all(tx, "WHERE owner_id = $ownerId ORDER BY app_id, environment", {
    ownerId,
  });
  return rows.map(toMembership);
}

/** Lists the memberships of every person, by the person's id. */
export async function listAllMemberships(tx: Reader): Promise<Map<string, Membership[]>> {
  const rows = await MEMBERSHIP.all(tx, "ORDER BY owner_id, app_id, environment");
  const byPerson = Map.groupBy(rows, ({ ownerId }) => ownerId);
  return new Map([...byPerson].map(([ownerId, own]) => [ownerId, own.map(toMembership)]));
}

/**
 * Replaces the person's memberships. Throws `invalid_input` (an unknown place, or one that occurs twice) and `in_use` (the last owner of
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
    await requirePlace(tx, one);
    const place = `${one.appId}/${one.name}`;
    if (seen.has(place))
      throw new Refusal(
        "invalid_input",
        `memberships names ${place} twice: give one role for each app and environment.`,
      );
    seen.add(place);
  }
  if (!memberships.some(isFullOwner)) await requireOtherOwner(tx, ownerId);
  await tx.run("DELETE FROM membership WHERE owner_id = ?1", ownerId);
  for (const { appId, name, role, payloads } of memberships) {
    const row = { ownerId, appId, environment: name, role, payloads, createdAt: nowMs };
    await MEMBERSHIP.insert(tx, row);
  }
}

async function requirePlace(tx: Reader, { appId, name }: Place): Promise<void> {
  if (appId === EVERY) return;
  const exists =
    name === EVERY ? (await findApp(tx, appId)) !== null : (await findEnvironment(tx, appId, name)) !== null;
  if (exists) return;
  throw new Refusal(
    "invalid_input",
    `memberships names ${name === EVERY ? appId : `${appId}/${name}`}, which does not exist: relay apps list shows the apps.`,
  );
}

function isFullOwner({ appId, name, role }: Membership): boolean {
  return appId === EVERY && name === EVERY && role === "owner";
}

/** Throws `in_use` if no other person is an owner of everything. */
export async function requireOtherOwner(tx: Reader, ownerId: string): Promise<void> {
  const all = await listAllMemberships(tx);
  const isOwner = (of: readonly Membership[] | undefined): boolean => of?.some(isFullOwner) ?? false;
  if (!isOwner(all.get(ownerId))) return;
  for (const [id, of] of all) if (id !== ownerId && isOwner(of)) return;
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
}
