/** The tables of roles and permissions for the documentation. */
import {
  hasPermission,
  PERMISSION_NAMES,
  PERMISSIONS,
  ROLE_NAMES,
  ROLES,
  type Role,
} from "../../platform/account/permission.ts";
import { writeTable } from "./markdown.ts";

/** Lists every role with what it does. */
export function writeRoles(): string {
  return writeTable(
    ["role", "a member with it"],
    ROLE_NAMES.map((name) => [name, ROLES[name]]),
  );
}

/** Lists every permission with what it allows, the roles that have it, and whether a secret key can have it. */
export function writePermissions(): string {
  const rows = PERMISSION_NAMES.map((name) => [
    `\`${name}\``,
    PERMISSIONS[name].may,
    ROLE_NAMES.map((role) => writeRole(role, name))
      .filter((words) => words !== "")
      .join(", "),
    PERMISSIONS[name].keys ? "yes" : "no",
  ]);
  return writeTable(["permission", "the caller may", "roles", "a secret key can have it"], rows);
}

function writeRole(role: Role, permission: (typeof PERMISSION_NAMES)[number]): string {
  if (hasPermission(role, permission, "production")) return role;
  return hasPermission(role, permission, "development") ? `${role} in development` : "";
}
