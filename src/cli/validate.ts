/** `relay validate`: every problem of every definition file and of the catalog, each with its line. */
import { existsSync } from "node:fs";
import { basename, relative, resolve } from "node:path";
import { writeJson } from "../ground/json.ts";
import { tellWarnings } from "../ground/refusal.ts";
import { catalogPath, isCatalogFile, readCatalogFile } from "../sync/catalog-file.ts";
import { listDefinitionFiles, readDefinitionFile } from "../sync/definition-file.ts";
import type { FileProblem } from "../sync/json-file.ts";
import { type Command, CommandFailure } from "./command.ts";
import { JSON_OUTPUT } from "./data-directory.ts";
import { readServiceDir, SERVICE_DIR } from "./service-option.ts";

interface Checked {
  file: string;
  problems: readonly FileProblem[];
  warnings: readonly string[];
}

export const validate: Command = {
  words: ["validate"],
  summary: "every problem of the definition files and the catalog",
  arguments: [
    {
      name: "files",
      help: "files to check; all of the service directory's when absent",
      many: true,
      optional: true,
    },
  ],
  options: [JSON_OUTPUT, SERVICE_DIR],
  examples: ["relay validate", "relay validate service/relays/checkout.json"],
  async run(input, world) {
    const files =
      input.positionals.length > 0
        ? input.positionals.map((file) => resolve(world.cwd, file))
        : await listServiceFiles(readServiceDir(input, world));
    const checked: Checked[] = [];
    for (const file of files) checked.push(await check(file, relative(world.cwd, file), world.clock.now()));
    const broken = checked.filter(({ problems }) => problems.length > 0);
    if (input.on("json")) {
      world.say(writeJson({ files: checked.map(view) }, 2));
    } else {
      for (const { file, problems, warnings } of checked) {
        for (const problem of problems) world.say(`${file}${showPlace(problem)}  ${problem.message}`);
        for (const warning of warnings) world.tell(`${file}  warning: ${warning}`);
      }
      const count = broken.reduce((sum, { problems }) => sum + problems.length, 0);
      const what = `${checked.length} ${checked.length === 1 ? "file" : "files"} checked`;
      world.tell(
        count === 0
          ? `${what}, no problems.`
          : `${what}, ${count} ${count === 1 ? "problem" : "problems"} found.`,
      );
    }
    return broken.length === 0 ? 0 : 1;
  },
};

async function listServiceFiles(serviceDir: string): Promise<string[]> {
  const catalog = catalogPath(serviceDir);
  const files = [...(await listDefinitionFiles(serviceDir)), ...(existsSync(catalog) ? [catalog] : [])];
  if (files.length > 0) return files;
  throw new CommandFailure(
    "not_found",
    `There is nothing to check in ${serviceDir}: relay init writes an example there, or name the folder with --service-dir.`,
  );
}

async function check(path: string, file: string, nowMs: number): Promise<Checked> {
  const read = isCatalogFile(basename(path))
    ? await readCatalogFile(path)
    : await readDefinitionFile(path, nowMs);
  if (!read.ok) return { file, problems: read.problems, warnings: [] };
  return { file, problems: [], warnings: "definition" in read ? tellWarnings(read.warnings) : read.warnings };
}

function showPlace({ place }: FileProblem): string {
  return place === null ? "" : `:${place.line}:${place.column}`;
}

function view({ file, problems, warnings }: Checked) {
  return {
    file,
    problems: problems.map(({ field, message, place }) => ({
      field,
      message,
      line: place?.line ?? null,
      column: place?.column ?? null,
    })),
    warnings,
  };
}
