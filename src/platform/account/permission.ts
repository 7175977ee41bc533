/**
 * The permissions of callers, in one table. Each route names the permission that it needs, and `http/admission.ts` is the only place that
 * checks it. The OpenAPI document, the documentation and the tests of callers are made from this table, and the dashboard hides buttons by its names.
 */

export const ROLES = {
  owner: "does everything",
  developer: "changes everything in development, and requests changes of production",
  support: "reads, acts on people and replays events",
  viewer: "reads",
} as const;
export type Role = keyof typeof ROLES;
export const ROLE_NAMES = Object.keys(ROLES) as Role[];

/** The environments where a role has a permission. Local development counts as development. */
type Where = "everywhere" | "development";

interface PermissionWords {
  /** Completes "may …". */
  may: string;
  /** False: no key has it, because a key that could do this would outlive its own revocation or act for a person. */
  keys: boolean;
  /** The requests with which a signed-in person needs it only soon after they authenticated. A route can differ. */
  sensitive: "writes" | "deletes" | "none";
  /** The roles that have it, in addition to the owner, who has every permission everywhere. */
  roles: Readonly<Partial<Record<Exclude<Role, "owner">, Where>>>;
}

export const PERMISSIONS = {
  read: {
    may: "read everything except the values of payloads and records",
    keys: true,
    sensitive: "none",
    roles: { developer: "everywhere", support: "everywhere", viewer: "everywhere" },
  },
  read_payloads: {
    may: "see the values of payloads and records, and files",
    keys: true,
    sensitive: "none",
    roles: { developer: "development" },
  },
  edit_definitions: {
    may: "change relays, the catalog and collections, capture requests, send test events and import missed events",
    keys: true,
    sensitive: "deletes",
    roles: { developer: "development" },
  },
  edit_records: {
    may: "write and delete records and files",
    keys: true,
    sensitive: "deletes",
    roles: { developer: "development" },
  },
  edit_settings: {
    may: "change secrets, settings, alert channels and the sender domain",
    keys: true,
    sensitive: "writes",
    roles: { developer: "development" },
  },
  act_on_people: {
    may: "grant, sell, credit, suspend, merge and correct people",
    keys: true,
    sensitive: "none",
    roles: { developer: "development", support: "everywhere" },
  },
  replay: {
    may: "retry and replay events, run what was missed, send a mail again and resolve alerts",
    keys: true,
    sensitive: "none",
    roles: { developer: "development", support: "everywhere" },
  },
  erase: {
    may: "erase a person and the payload of an event",
    keys: true,
    sensitive: "writes",
    roles: { developer: "development" },
  },
  request_changes: {
    may: "request changes of production, and apply the approved ones",
    keys: true,
    sensitive: "none",
    roles: { developer: "everywhere" },
  },
  approve: {
    may: "approve or refuse changes of production",
    keys: false,
    sensitive: "writes",
    roles: {},
  },
  manage_keys: {
    may: "create and revoke keys",
    keys: false,
    sensitive: "writes",
    roles: { developer: "development" },
  },
  manage_server: {
    may: "manage members, apps, backups and the server",
    keys: false,
    sensitive: "writes",
    roles: {},
  },
} as const satisfies Record<string, PermissionWords>;

export type Permission = keyof typeof PERMISSIONS;

export const PERMISSION_NAMES = Object.keys(PERMISSIONS) as Permission[];

/** A set of permissions. */
export type Permissions = ReadonlySet<Permission>;

/** The permissions of the command line on the data directory. An approval needs an owner who sees the plan in the dashboard. */
export const COMMAND_LINE_PERMISSIONS: Permissions = new Set(
  PERMISSION_NAMES.filter((name) => name !== "approve"),
);

/** The permissions that a secret key can have. */
export const KEY_PERMISSIONS: Permissions = new Set(
  PERMISSION_NAMES.filter((name) => PERMISSIONS[name].keys),
);

/** Reports whether a request with this method needs the permission only soon after the person authenticated. */
export function isSensitive(permission: Permission, method: string): boolean {
  const { sensitive } = PERMISSIONS[permission];
  return sensitive === "deletes" ? method === "DELETE" : sensitive === "writes" && method !== "GET";
}

/** Every app, or every environment. */
export const EVERY = "*";

/** An app and an environment; EVERY for what belongs to all of them. */
export interface Place {
  appId: string;
  name: string;
}

/** The place of what belongs to the server. */
export const SERVER_PLACE: Place = { appId: EVERY, name: EVERY };

/** A role of a person in a place. */
export interface Membership extends Place {
  role: Role;
  /** True if the person sees the values of payloads, whatever the role. */
  payloads: boolean;
}

/** Reports whether a role has a permission in an environment of this name. EVERY counts as production. */
export function hasPermission(role: Role, permission: Permission, name: string): boolean {
  if (role === "owner") return true;
  const roles: PermissionWords["roles"] = PERMISSIONS[permission].roles;
  const where = roles[role];
  return where === "everywhere" || (where === "development" && name !== "production" && name !== EVERY);
}

/** Returns the permissions that the memberships together give in a place. */
export function permissionsIn(memberships: readonly Membership[], { appId, name }: Place): Permissions {
  const found = new Set<Permission>();
  for (const one of memberships) {
    const isHere = (one.appId === EVERY || one.appId === appId) && (one.name === EVERY || one.name === name);
    if (!isHere) continue;
    for (const permission of PERMISSION_NAMES) {
      const isAllowedToSee = permission === "read_payloads" && one.payloads;
      if (isAllowedToSee || hasPermission(one.role, permission, name)) found.add(permission);
    }
  }
  return found;
}

/** Reports whether any of the memberships is of the app. */
export function isMemberOf(memberships: readonly Membership[], appId: string): boolean {
  return memberships.some((one) => one.appId === EVERY || one.appId === appId);
}

/** Returns the permissions that both sets have. */
export function commonPermissions(one: Permissions, other: Permissions): Permissions {
  return new Set([...one].filter((name) => other.has(name)));
}
