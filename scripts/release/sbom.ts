/**
 * Writes the list of the parts of a release (SBOM) in the format CycloneDX. npm lists the packages of the lock file. This module adds the parts of Bun
 * that npm does not know, and replaces what differs between two runs.
 */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { requireLockedBun } from "./fetch-bun.ts";
import { comparePaths } from "./pack.ts";
import { PROJECT, type Release } from "./release.ts";

/** The parts of Bun as `process.versions` names them, with their names elsewhere and their licenses. */
const BUN_PARTS: readonly (readonly [key: string, name: string, license: string])[] = [
  ["ares", "c-ares", "MIT"],
  ["boringssl", "boringssl", "Apache-2.0"],
  ["icu", "icu", "Unicode-3.0"],
  ["libarchive", "libarchive", "BSD-2-Clause"],
  ["libdeflate", "libdeflate", "MIT"],
  ["llhttp", "llhttp", "MIT"],
  ["lolhtml", "lol-html", "BSD-3-Clause"],
  ["lshpack", "ls-hpack", "MIT"],
  ["mimalloc", "mimalloc", "MIT"],
  // Bun on macOS uses the SQLite of the system.
  ["sqlite", "sqlite", "blessing"],
  ["tinycc", "tinycc", "LGPL-2.1-only"],
  ["webkit", "webkit", "LGPL-2.1-only"],
  ["zlib", "zlib", "Zlib"],
  ["zstd", "zstd", "BSD-3-Clause"],
];

interface Component {
  "bom-ref": string;
  type: string;
  name: string;
  version: string;
  purl: string;
  scope?: string;
  hashes?: { alg: string; content: string }[];
  licenses?: { license: { id: string } }[];
}

/** The fields of a CycloneDX document that this module reads or writes. */
interface Sbom {
  serialNumber: string;
  metadata: { timestamp: string; component: Component };
  components: Component[];
  dependencies: { ref: string; dependsOn: string[] }[];
}

/** Writes `relay-service.cdx.json`. Throws if npm is missing or fails. */
export function writeSbom({ out, systems, time }: Release): string[] {
  const sbom = listPackages();
  const buns = systems.map(({ target }) => requireLockedBun(target));
  // npm lists Bun for every system.
  const others = sbom.components.filter(({ purl }) => purl.startsWith("pkg:npm/%40oven/"));
  const left = new Set(others.map((component) => component["bom-ref"]));
  const executables = buns.map(({ name, version, sha512, purl }) => ({
    "bom-ref": `${name}@${version}`,
    type: "library",
    name,
    version,
    purl,
    hashes: [{ alg: "SHA-512", content: sha512 }],
    licenses: [{ license: { id: "MIT" } }],
  }));
  const parts = BUN_PARTS.map(([key, name, license]) => {
    const version = process.versions[key];
    if (version === undefined)
      throw new Error(`This Bun does not name its version of ${name}. Fix the list in sbom.ts.`);
    return {
      "bom-ref": `${name}@${version}`,
      type: "library",
      name,
      version,
      purl: `pkg:generic/${name}@${version}`,
      licenses: [{ license: { id: license } }],
    };
  });
  const partRefs = parts.map((part) => part["bom-ref"]);
  const executableRefs = executables.map((one) => one["bom-ref"]);
  const dependencies = sbom.dependencies
    .filter(({ ref }) => !left.has(ref))
    .map(({ ref, dependsOn }) => ({
      ref,
      dependsOn: ref.startsWith("bun@")
        ? executableRefs.toSorted(comparePaths)
        : dependsOn.filter((one) => !left.has(one)).toSorted(comparePaths),
    }));
  const complete = {
    ...sbom,
    serialNumber: "",
    metadata: {
      ...sbom.metadata,
      timestamp: time.toISOString(),
      component: { ...sbom.metadata.component, type: "application" },
    },
    components: [
      ...sbom.components.filter((component) => !left.has(component["bom-ref"])),
      ...executables,
      ...parts,
    ].toSorted((one, other) => comparePaths(one.purl, other.purl)),
    dependencies: [
      ...dependencies,
      ...executableRefs.map((ref) => ({ ref, dependsOn: partRefs })),
      ...partRefs.map((ref) => ({ ref, dependsOn: [] })),
    ].toSorted((one, other) => comparePaths(one.ref, other.ref)),
  };
  const file = join(out, "relay-service.cdx.json");
  const numbered = { ...complete, serialNumber: makeSerialNumber(JSON.stringify(complete)) };
  writeFileSync(file, `${JSON.stringify(numbered, null, 2)}\n`);
  return [file];
}

/**
 * Lists the packages that the executable can contain, with npm. It reads a lock file without the tools of development, in a folder with the name of
 * the package: `npm sbom --omit dev` leaves out packages that development needs too, and writes the name of the folder.
 */
function listPackages(): Sbom {
  const npm = Bun.which("npm");
  if (npm === null)
    throw new Error("npm lists the packages of a release and is not on the PATH. Install npm.");
  const place = mkdtempSync(join(tmpdir(), "relay-sbom-"));
  try {
    const folder = join(place, "relay-service");
    mkdirSync(folder);
    const manifest = JSON.parse(readFileSync(join(PROJECT, "package.json"), "utf8"));
    const lock = JSON.parse(readFileSync(join(PROJECT, "package-lock.json"), "utf8")) as {
      packages: Record<string, { dev?: boolean; devDependencies?: object }>;
    };
    const packages = Object.entries(lock.packages)
      .filter(([, entry]) => entry.dev !== true)
      .map(([path, { devDependencies: _, ...entry }]) => [path, entry]);
    const files = {
      "package.json": { ...manifest, devDependencies: undefined },
      "package-lock.json": { ...lock, packages: Object.fromEntries(packages) },
    };
    for (const [name, content] of Object.entries(files))
      writeFileSync(join(folder, name), JSON.stringify(content));
    const command = [npm, "sbom", "--sbom-format", "cyclonedx", "--package-lock-only"];
    const { success, stdout, stderr } = Bun.spawnSync(command, { cwd: folder });
    if (!success) throw new Error(`npm could not list the packages: ${stderr}`);
    return JSON.parse(stdout.toString()) as Sbom;
  } finally {
    rmSync(place, { recursive: true });
  }
}

/** Makes a UUID of version 8 from a text. npm makes a random one, which differs in each build. */
function makeSerialNumber(text: string): string {
  const hex = new Bun.CryptoHasher("sha256").update(text).digest("hex");
  return `urn:uuid:${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-a${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}
