/** Checks the list of parts and the provenance of a release: complete, consistent, and the same in each build. */
import { afterAll, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import packageJson from "../../package.json";
import { writeLicensePage } from "../../scripts/license-page.ts";
import { hashFile } from "../../scripts/release/checksums.ts";
import { requireLockedBun } from "../../scripts/release/fetch-bun.ts";
import { writeProvenance } from "../../scripts/release/provenance.ts";
import { git, type Release } from "../../scripts/release/release.ts";
import { writeSbom } from "../../scripts/release/sbom.ts";
import { RELEASED } from "../../scripts/release/systems.ts";
import { PROJECT_ROOT } from "./source-tree.ts";

const place = mkdtempSync(join(tmpdir(), "relay-origin-"));
afterAll(() => rmSync(place, { recursive: true }));

function makeRelease(name: string): Release {
  const out = join(place, name);
  mkdirSync(out);
  const repository = "https://github.com/owner/name";
  return { built: out, out, systems: RELEASED, version: "1.2.3", time: new Date("2026-05-06T07:08:09Z"), repository };
}

const [sbomFile = ""] = writeSbom(makeRelease("one"));
const sbom = JSON.parse(readFileSync(sbomFile, "utf8"));
const components: { "bom-ref": string; name: string; version: string; purl: string; hashes?: { content: string }[]; licenses?: object[] }[] =
  sbom.components;
const refs = components.map((component) => component["bom-ref"]);

test("the list is a CycloneDX document about the service", () => {
  expect(sbom).toMatchObject({ bomFormat: "CycloneDX", specVersion: expect.stringMatching(/^1\.\d$/), version: 1 });
  expect(sbom.serialNumber).toMatch(/^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/);
  expect(sbom.metadata).toMatchObject({
    timestamp: "2026-05-06T07:08:09.000Z",
    component: { type: "application", name: "relay-service", version: packageJson.version },
  });
});

test("the list has each dependency of package.json and each package of `relay licenses`", () => {
  const known = new Set(components.map(({ name, purl }) => (purl.includes("%40") ? decodeURIComponent(purl).slice("pkg:npm/".length) : `${name}@`)));
  const names = [...writeLicensePage().matchAll(/^\| (\S+) \| \d/gm)].map(([, name = ""]) => name);
  expect(names.length).toBeGreaterThan(10);
  const has = (name: string): boolean => [...known].some((one) => one.startsWith(`${name}@`));
  expect([...names, ...Object.keys(packageJson.dependencies)].filter((name) => !has(name))).toEqual([]);
});

test("the list has the Bun of each released system with its hash, no other Bun, and SQLite", () => {
  const buns = components.filter(({ purl }) => purl.startsWith("pkg:npm/%40oven/"));
  expect(buns.map(({ name, hashes }) => `${name} ${hashes?.[0]?.content}`).toSorted()).toEqual(
    RELEASED.map(({ target }) => requireLockedBun(target))
      .map((locked) => `${locked.name} ${locked.sha512}`)
      .toSorted(),
  );
  expect(refs).toContain(`sqlite@${process.versions.sqlite}`);
});

test("the list has each package of the lock file but the tools of development, and no part twice", () => {
  const { packages } = JSON.parse(readFileSync(join(PROJECT_ROOT, "package-lock.json"), "utf8")) as {
    packages: Record<string, { version: string; dev?: boolean }>;
  };
  const locked = Object.entries(packages)
    .filter(([path, { dev }]) => path !== "" && dev !== true)
    .map(([path, { version }]) => `${path.slice(path.lastIndexOf("node_modules/") + "node_modules/".length)}@${version}`);
  const isBun = (name: string): boolean => name.startsWith("@oven/");
  const listed = components.filter(({ purl }) => purl.startsWith("pkg:npm/")).map((component) => component["bom-ref"]);
  expect([...new Set(listed.filter((ref) => !isBun(ref)))].toSorted()).toEqual([...new Set(locked.filter((ref) => !isBun(ref)))].toSorted());
  expect(refs.filter((ref, at) => refs.indexOf(ref) !== at)).toEqual([]);
});

test("each dependency in the list is a part of it", () => {
  const known = new Set([...refs, sbom.metadata.component["bom-ref"]]);
  const named = sbom.dependencies.flatMap(({ ref, dependsOn }: { ref: string; dependsOn: string[] }) => [ref, ...dependsOn]);
  expect(named.filter((ref: string) => !known.has(ref))).toEqual([]);
});

test("a second build writes the same list", () => {
  const [second = ""] = writeSbom(makeRelease("two"));
  expect(hashFile(second)).toBe(hashFile(sbomFile));
});

test("the provenance is an in-toto statement of SLSA with the hash of each file, the commit and each Bun", () => {
  const release = makeRelease("three");
  const file = join(release.out, "relay.tar.gz");
  writeFileSync(file, "archive");
  const [path = ""] = writeProvenance(release, [file]);
  const commit = git("rev-parse", "HEAD");
  if (commit === null) return expect(path).toBe("");
  const statement = JSON.parse(readFileSync(path, "utf8"));
  expect(statement).toMatchObject({
    _type: "https://in-toto.io/Statement/v1",
    subject: [{ name: "relay.tar.gz", digest: { sha256: hashFile(file) } }],
    predicateType: "https://slsa.dev/provenance/v1",
    predicate: { buildDefinition: { externalParameters: { ref: "refs/tags/v1.2.3" } } },
  });
  const { buildDefinition, runDetails } = statement.predicate;
  expect(buildDefinition.resolvedDependencies[0]).toEqual({
    uri: "git+https://github.com/owner/name@refs/tags/v1.2.3",
    digest: { gitCommit: commit },
  });
  expect(buildDefinition.resolvedDependencies).toHaveLength(1 + RELEASED.length);
  for (const uri of [buildDefinition.buildType, runDetails.builder.id]) expect(() => new URL(uri)).not.toThrow();
});

test("without a repository the provenance would name no source, so it is not written", () => {
  expect(writeProvenance({ ...makeRelease("four"), repository: null }, [])).toEqual([]);
});
