/** The words of roles and permissions. Their types are the table of permissions, so other words do not compile. */
import type { PERMISSIONS, ROLES } from "../../src/platform/account/permission.ts";

type Words = typeof PERMISSIONS;
/** Permissions that a key can have. */
type KeyPermission = { [Name in keyof Words]: Words[Name]["keys"] extends true ? Name : never }[keyof Words];

export const ROLE_WORDS: typeof ROLES = {
  owner: "does everything",
  developer: "changes everything in development, and requests changes of production",
  support: "reads, acts on people and replays events",
  viewer: "reads",
};

/** Each completes "The key may …". */
export const KEY_WORDS: { readonly [Name in KeyPermission]: Words[Name]["may"] } = {
  read: "read everything except the values of payloads and records",
  read_payloads: "see the values of payloads and records, and files",
  edit_definitions:
    "change relays, the catalog and collections, capture requests, send test events and import missed events",
  edit_records: "write and delete records and files",
  edit_settings: "change secrets, settings, alert channels and the sender domain",
  act_on_people: "grant, sell, credit, suspend, merge and correct people",
  replay: "retry and replay events, run what was missed, send a mail again and resolve alerts",
  erase: "erase a person and the payload of an event",
  request_changes: "request changes of production, and apply the approved ones",
};
