/**
 * Writes the page that `relay licenses` shows: every package in the executable with its version, its license and the license's text. The
 * build reads them from node_modules.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { pack } from "../src/base/packed.ts";

interface Manifest {
  name: string;
  version: string;
  license?: string;
  dependencies?: Record<string, string>;
  devDependencies?: Record<string, string>;
  peerDependencies?: Record<string, string>;
}

interface Package {
  folder: string;
  manifest: Manifest;
}

const ROOT = join(import.meta.dir, "..");
const LICENSE_FILE = /^(licen[cs]e|copying|notice)(-\w+)?(\.(md|txt))?$/i;

/** Writes the page in Markdown. Throws if a package names no license. */
export function writeLicensePage(): string {
  const packages = listPackages(ROOT);
  const rows = packages.map(
    ({ manifest }) => `| ${manifest.name} | ${manifest.version} | ${manifest.license} |`,
  );
  const texts = packages.map(
    (one) => `### ${one.manifest.name} ${one.manifest.version}\n\n${readLicense(one)}`,
  );
  return [
    "# Third-party software",
    "The executable contains these packages, the Bun runtime it is compiled with (MIT, with WebKit's JavaScriptCore under LGPL-2.1 and the other parts that Bun's own LICENSE.md lists) and, in Bun, SQLite (public domain).",
    `| package | version | license |\n|---|---|---|\n${rows.join("\n")}`,
    "## Licenses",
    ...texts,
  ]
    .join("\n\n")
    .concat("\n");
}

/** Returns the same, packed for the executable. */
export function packLicensePage(): string {
  return pack(writeLicensePage());
}

/** Lists the packages that the dependencies reach, peers included, by name. Tools of development are not in the executable. */
function listPackages(root: string): Package[] {
  const own = readManifest(root);
  const found = new Map<string, Package>();
  // The first lines of the page name Bun, because its package does not list its parts.
  const tools = new Set(["bun", ...Object.keys(own.devDependencies ?? {})]);
  const open = Object.keys(own.dependencies ?? {}).map((name) => ({ name, from: root }));
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const { name, from } = next;
    const folder = findFolder(root, from, name);
    if (folder === null || tools.has(name) || found.has(folder)) continue;
    const manifest = readManifest(folder);
    if (manifest.license === undefined)
      throw new Error(`${name} names no license: read its files and decide.`);
    found.set(folder, { folder, manifest });
    const needed = { ...manifest.dependencies, ...manifest.peerDependencies };
    open.push(...Object.keys(needed).map((one) => ({ name: one, from: folder })));
  }
  return [...found.values()].sort((left, right) => (left.manifest.name < right.manifest.name ? -1 : 1));
}

/** Finds the folder of an imported package: its importer's own node_modules, otherwise the shared one. Null if an optional package is missing. */
function findFolder(root: string, from: string, name: string): string | null {
  const places = [join(from, "node_modules", name), join(root, "node_modules", name)];
  return places.find((place) => existsSync(join(place, "package.json"))) ?? null;
}

function readManifest(folder: string): Manifest {
  return JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as Manifest;
}

function readLicense({ folder, manifest }: Package): string {
  const files = readdirSync(folder)
    .filter((file) => LICENSE_FILE.test(file))
    .sort();
  if (files.length === 0) return `The package holds no text; its license is ${manifest.license}.`;
  const text = files.map((file) => readFileSync(join(folder, file), "utf8").trim()).join("\n\n");
  return text
    .split(/\r?\n/)
    .map((line) => `    ${line}`.trimEnd())
    .join("\n");
}
