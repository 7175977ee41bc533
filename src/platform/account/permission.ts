/**
 * The permissions of callers, in one table. Each route names the permission that it needs, and `http/admission.ts` is the only place that
 * checks it. The OpenAPI document, the documentation and the tests of callers are made from this table.
 */

interface PermissionWords {
  /** Completes "may …". */
  may: string;
  /** False: no key has it, because a key that could do this would outlive its own revocation or act for a person. */
  keys: boolean;
}

export const PERMISSIONS = {
  read: { may: "read everything except the values of payloads", keys: true },
  read_payloads: { may: "see the values of payloads", keys: true },
  edit_definitions: {
    may: "change relays, the catalog and collections, capture requests and send test events",
    keys: true,
  },
  edit_records: { may: "write and delete records and files", keys: true },
  edit_settings: { may: "change secrets, settings and the sender domain", keys: true },
  act_on_people: { may: "grant, sell, credit, suspend, merge and correct people", keys: true },
  replay: {
    may: "retry and replay events, run what was missed, send a mail again and resolve alerts",
    keys: true,
  },
  erase: { may: "erase a person and the payload of an event", keys: true },
  request_changes: { may: "request changes of production, and apply the approved ones", keys: true },
  approve: { may: "approve or refuse changes of production", keys: false },
  manage_keys: { may: "create and revoke keys", keys: false },
  manage_server: { may: "manage owners, apps, backups and the server", keys: false },
} as const satisfies Record<string, PermissionWords>;

export type Permission = keyof typeof PERMISSIONS;

export const PERMISSION_NAMES = Object.keys(PERMISSIONS) as Permission[];

/** The permissions of an owner in the dashboard. */
export const ALL_PERMISSIONS: ReadonlySet<Permission> = new Set(PERMISSION_NAMES);

/** The permissions of the command line on the data directory. An approval needs an owner who sees the plan in the dashboard. */
export const COMMAND_LINE_PERMISSIONS: ReadonlySet<Permission> = new Set(
  PERMISSION_NAMES.filter((name) => name !== "approve"),
);

/** The permissions of a secret key. */
export const KEY_PERMISSIONS: ReadonlySet<Permission> = new Set(
  PERMISSION_NAMES.filter((name) => PERMISSIONS[name].keys),
);
