/** Rejects folders of the service directory that are links out of it. Following one would read or write files of another program. */
import { realpathSync } from "node:fs";
import { isAbsolute, relative, sep } from "node:path";
import { fileErrorCode } from "../../base/durable-file.ts";
import { Refusal } from "../../base/refusal.ts";

/** Reports whether the folder is a link out of the service directory; false for a folder that does not exist. */
export function leadsOutside(serviceDir: string, folder: string): boolean {
  try {
    const way = relative(realpathSync(serviceDir), realpathSync(folder));
    return way === ".." || way.startsWith(`..${sep}`) || isAbsolute(way);
  } catch (error) {
    if (fileErrorCode(error) === "ENOENT") return false;
    throw error;
  }
}

/** Throws `invalid_input` for a folder that leads outside. */
export function requireOwnFolder(serviceDir: string, folder: string): void {
  if (leadsOutside(serviceDir, folder))
    throw new Refusal(
      "invalid_input",
      `${folder} is a link to a folder outside of the service directory, so it is not followed: replace the link with a folder that holds the files.`,
    );
}
