/** The table of permissions for the documentation. */
import { PERMISSION_NAMES, PERMISSIONS } from "../../platform/account/permission.ts";
import { writeTable } from "./markdown.ts";

/** Lists every permission, with what it allows and whether a secret key has it. */
export function writePermissions(): string {
  const rows = PERMISSION_NAMES.map((name) => [
    `\`${name}\``,
    PERMISSIONS[name].may,
    PERMISSIONS[name].keys ? "yes" : "no",
  ]);
  return writeTable(["permission", "the caller may", "a secret key has it"], rows);
}
