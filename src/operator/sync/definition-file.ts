/**
 * Definition files: `relays/<name>.json` in the service directory, one relay each. Reads and checks them; saves no relay and writes no
 * file.
 */
import { readdir } from "node:fs/promises";
import { basename, join } from "node:path";
import { isJsonObject } from "../../base/json.ts";
import type { Warning } from "../../base/refusal.ts";
import { RELAY_NAME } from "../../base/shape.ts";
import { checkDefinition } from "../../rules/relay/definition.ts";
import type { Definition } from "../../rules/relay/definition-shape.ts";
import {
  type FileProblem,
  type JsonFile,
  listDuplicateNames,
  locateInFile,
  readJsonFile,
} from "./json-file.ts";
import type { JsonPositions } from "./json-position.ts";
import { requireOwnFolder } from "./own-folder.ts";

/** The result of reading a definition file; `name` is the file's. */
type DefinitionFile =
  | { ok: true; name: string; definition: Definition; warnings: Warning[]; places: JsonPositions }
  | { ok: false; name: string; problems: FileProblem[] };

const EXTENSION = ".json";

/** Returns the folder of a service directory's definition files. */
export function relaysFolder(serviceDir: string): string {
  return join(serviceDir, "relays");
}

/** Returns the file of the relay with this name. Throws `invalid_input` where the folder leads outside the service directory. */
export function definitionPath(serviceDir: string, name: string): string {
  const folder = relaysFolder(serviceDir);
  requireOwnFolder(serviceDir, folder);
  return join(folder, `${name}${EXTENSION}`);
}

/**
 * Lists the full paths of the definition files by name; none where the folder does not exist. Ignores hidden and other files. Throws as
 * `definitionPath` does.
 */
export async function listDefinitionFiles(serviceDir: string): Promise<string[]> {
  const folder = relaysFolder(serviceDir);
  requireOwnFolder(serviceDir, folder);
  const entries = await readdir(folder, { withFileTypes: true }).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return [];
    throw error;
  });
  return entries
    .filter((entry) => !entry.isDirectory() && isDefinitionFile(entry.name))
    .map((entry) => join(folder, entry.name))
    .sort();
}

/** Reports whether a file of this name in the folder is a definition file. */
function isDefinitionFile(file: string): boolean {
  return file.endsWith(EXTENSION) && !file.startsWith(".");
}

/** Returns the relay's name from the name of its file. */
export function relayNameOf(path: string): string {
  return basename(path, EXTENSION);
}

/** Reads one file and checks it as every save does. Never throws. */
export async function readDefinitionFile(path: string, nowMs: number | null = null): Promise<DefinitionFile> {
  return checkDefinitionFile(relayNameOf(path), await readJsonFile(path), nowMs);
}

/** Checks a file that was read already. */
export function checkDefinitionFile(
  name: string,
  file: JsonFile,
  nowMs: number | null = null,
): DefinitionFile {
  if (!file.ok) return { ok: false, name, problems: file.problems };
  const checked = checkDefinition(file.value, nowMs);
  const problems = [
    ...listDuplicateNames(file.places),
    ...checkName(name, file.value),
    ...("problems" in checked ? checked.problems : []),
  ];
  if (problems.length > 0 || "problems" in checked) {
    return { ok: false, name, problems: locateInFile(problems, file.places) };
  }
  return { ok: true, name, ...checked, places: file.places };
}

function checkName(name: string, value: unknown): { field: string; message: string }[] {
  const written = isJsonObject(value) ? value.name : undefined;
  if (typeof written !== "string" || !RELAY_NAME.test(written) || written === name) return [];
  return [
    {
      field: "name",
      message: `\`name\` is ${written}, but the file is ${name}${EXTENSION}: give both the same name.`,
    },
  ];
}
