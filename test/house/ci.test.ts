/**
 * Checks that the parts of `.ci/run`, which the workflow calls, together run every folder of tests, and that the workflow of a release runs those
 * tests first, with as few rights as it needs.
 */
import { expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { PROJECT_ROOT } from "./source-tree.ts";

const script = readFileSync(join(PROJECT_ROOT, ".ci/run"), "utf8");

test("the workflow names exactly the parts of .ci/run", () => {
  const workflow = readFileSync(join(PROJECT_ROOT, ".github/workflows/ci.yml"), "utf8");
  const named = [...workflow.matchAll(/^ +only: (\w+)$/gm)].map(([, part]) => part);
  expect(named).toEqual([...script.matchAll(/^ {2}(\w+)\)$/gm)].flatMap(([, part]) => (part === "all" ? [] : [part])));
  expect(named).toHaveLength(2);
});

test("the parts run every folder of tests", () => {
  const [, braces = ""] = /--sqlite test\/\{([a-z,]+)\}/.exec(script) ?? [];
  const named = [...braces.split(","), ...[...script.matchAll(/--sqlite test\/([a-z]+)\//g)].map(([, folder]) => folder)];
  const folders = readdirSync(join(PROJECT_ROOT, "test"), { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && !["kit", "mutants", "soak"].includes(entry.name))
    .map((entry) => entry.name);
  expect(named.toSorted()).toEqual(folders.toSorted());
});

interface Job {
  uses?: string;
  needs?: string[];
  container?: string;
  permissions?: Record<string, string>;
  steps?: { uses?: string; run?: string; with?: Record<string, unknown> }[];
}

interface Workflow {
  on: Record<string, unknown>;
  permissions: Record<string, string>;
  jobs: Record<string, Job>;
}

function readWorkflow(name: string): Workflow {
  return Bun.YAML.parse(readFileSync(join(PROJECT_ROOT, ".github/workflows", name), "utf8")) as Workflow;
}

const ci = readWorkflow("ci.yml");
const release = readWorkflow("release.yml");
const steps = Object.values(release.jobs).flatMap((job) => job.steps ?? []);

test("a tag starts the release, which publishes after the same tests and the check of the release", () => {
  expect(release.on).toEqual({ push: { tags: ["v*"] } });
  expect(release.jobs["tests"]?.uses).toBe("./.github/workflows/ci.yml");
  expect(ci.on).toHaveProperty("workflow_call");
  // The version at npm is final, so whatever else can fail comes before.
  expect(release.jobs["release"]?.needs).toEqual(["agree", "tests", "image"]);
  expect(release.jobs["agree"]?.steps?.at(-1)?.run).toBe("npm run release -- --check");
});

test("only the jobs that publish may write, each only to its own place", () => {
  expect([ci.permissions, release.permissions]).toEqual([{ contents: "read" }, { contents: "read" }]);
  const extra = Object.entries(release.jobs).filter(([, { permissions }]) => permissions !== undefined);
  const signing = { "id-token": "write", attestations: "write" };
  expect(Object.fromEntries(extra.map(([name, { permissions }]) => [name, permissions]))).toEqual({
    release: { contents: "write", ...signing },
    image: { contents: "read", packages: "write", ...signing },
  });
});

test("the image is pushed after the same tests, on the Debian of its C library, and its digest is signed", () => {
  const image = release.jobs["image"];
  expect([image?.needs, image?.container]).toEqual([["agree", "tests"], "node:24-bookworm"]);
  const texts = (image?.steps ?? []).map(({ uses, run, with: inputs }) => `${uses ?? ""} ${run ?? ""} ${JSON.stringify(inputs ?? {})}`);
  const order = ["actions/checkout", "skopeo", "npm run image", "skopeo copy --all", "steps.push.outputs.digest"];
  expect(order.map((word) => texts.findIndex((text) => text.includes(word)))).toEqual([0, 1, 2, 3, 4]);
});

test("both workflows use the same version of an action", () => {
  const used = [ci, release].flatMap(({ jobs }) => Object.values(jobs).flatMap((job) => (job.steps ?? []).flatMap(({ uses }) => uses ?? [])));
  const names = new Set(used.map((one) => one.split("@")[0]));
  expect(used.filter((one) => !/^actions\/[a-z-]+@v\d+$/.test(one))).toEqual([]);
  expect(new Set(used).size).toBe(names.size);
});

test("the release signs, drafts and publishes what the dry run wrote, in this order", () => {
  const texts = (release.jobs["release"]?.steps ?? []).map(
    ({ uses, run, with: inputs }) => `${uses ?? ""} ${run ?? ""} ${JSON.stringify(inputs ?? {})}`,
  );
  const order = ["actions/checkout", "--dry-run --no-tests", "dist/release/checksums.txt", "dist/release/* --clobber", "npm publish"];
  expect(order.map((word) => texts.findIndex((text) => text.includes(word)))).toEqual([0, 2, 3, 4, 5]);
  expect(texts.at(-1)).toContain("dist/npm/@relay-service/* dist/npm/relay-service-* dist/npm/relay-service;");
});

test("a shell reads each script of the release", () => {
  for (const { run } of steps) {
    if (run === undefined) continue;
    const { success, stderr } = Bun.spawnSync(["sh", "-n"], { stdin: new TextEncoder().encode(run) });
    expect([success, stderr.toString()]).toEqual([true, ""]);
  }
});
