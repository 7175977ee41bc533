/** Checks the definition files and the catalog together, as a save would (`relay validate`), and reports each problem with its line. */
import { existsSync } from "node:fs";
import { relative, resolve } from "node:path";
import { writeJson } from "../../../base/json.ts";
import { catalogPath } from "../../../operator/sync/catalog-file.ts";
import { listDefinitionFiles } from "../../../operator/sync/definition-file.ts";
import { type CheckedFile, checkFiles } from "../../../operator/sync/file-set.ts";
import type { FileProblem, FileWarning } from "../../../operator/sync/json-file.ts";
import { type Command, CommandFailure } from "../command.ts";
import { JSON_OUTPUT } from "../data-directory.ts";
import { BASE_URL, DEFAULT_PORT, readBaseUrl, readServiceDir, SERVICE_DIR } from "../service-option.ts";
import { count } from "./plan-lines.ts";

export const validate: Command = {
  words: ["validate"],
  summary: "check the definition files",
  details:
    "The command checks the definition files and the catalog together, without a data directory. A save refuses a file with a problem. A save accepts a warning, but the text is probably not what you want.",
  arguments: [
    {
      name: "files",
      help: "the files to check; by default all files of the service directory",
      many: true,
      optional: true,
      of: "file",
    },
  ],
  options: [
    { name: "strict", help: "also exit with 1 for warnings" },
    JSON_OUTPUT,
    SERVICE_DIR,
    {
      ...BASE_URL,
      otherwise: `http://localhost:${DEFAULT_PORT}`,
      help: "the service's own origin, which no relay can call",
    },
  ],
  examples: ["relay validate", "relay validate --strict", "relay validate service/relays/checkout.json"],
  async run(input, io) {
    const files =
      input.positionals.length > 0
        ? input.positionals.map((file) => resolve(io.cwd, file))
        : await listServiceFiles(readServiceDir(input, io));
    const baseUrl = readBaseUrl(input) ?? `http://localhost:${DEFAULT_PORT}`;
    const checked = await checkFiles(files, { nowMs: io.clock.now(), baseUrl });
    const problems = checked.reduce((sum, file) => sum + file.problems.length, 0);
    const warnings = checked.reduce((sum, file) => sum + file.warnings.length, 0);
    if (input.on("json")) {
      const shown = checked.map((one) => view(relative(io.cwd, one.path), one));
      io.print(writeJson({ files: shown, problems, warnings }, 2));
    } else {
      for (const { path, problems, warnings } of checked) {
        const file = relative(io.cwd, path);
        for (const problem of problems) io.print(`${file}${showPlace(problem)}  ${problem.message}`);
        for (const one of warnings)
          io.inform(`${file}${showPlace(one)}  warning: ${one.message}  ${one.code}`);
      }
      io.inform(
        `${count(checked.length, "file")} checked, ${formatFound(problems, "problem")}, ${formatFound(warnings, "warning")}.`,
      );
    }
    return problems > 0 || (input.on("strict") && warnings > 0) ? 1 : 0;
  },
};

async function listServiceFiles(serviceDir: string): Promise<string[]> {
  const catalog = catalogPath(serviceDir);
  const files = [...(await listDefinitionFiles(serviceDir)), ...(existsSync(catalog) ? [catalog] : [])];
  if (files.length > 0) return files;
  throw new CommandFailure(
    "not_found",
    `There is nothing to check in ${serviceDir}: write an example with relay init, or name the folder with --service-dir.`,
  );
}

function formatFound(amount: number, what: string): string {
  return amount === 0 ? `no ${what}s` : count(amount, what);
}

function showPlace({ place }: FileProblem | FileWarning): string {
  return place === null ? "" : `:${place.line}:${place.column}`;
}

function view(file: string, { problems, warnings }: CheckedFile) {
  const placed = <One extends FileProblem>({ place, ...problem }: One) => ({
    ...problem,
    line: place?.line ?? null,
    column: place?.column ?? null,
  });
  return { file, problems: problems.map(placed), warnings: warnings.map(placed) };
}
