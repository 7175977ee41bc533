/**
 * Writes THIRD_PARTY.md: every package that is part of what is released, with its version, its licence and the licence's text, read from
 * node_modules. A house test holds the file to what is installed; run this again after a dependency changed.
 */
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

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

const LICENCE_FILE = /^(licen[cs]e|copying|notice)(-\w+)?(\.(md|txt))?$/i;

/** The page for what is installed below `root`. Throws on a package without a licence. */
export function writeThirdParty(root: string): string {
  const packages = listPackages(root);
  const rows = packages.map(
    ({ manifest }) => `| ${manifest.name} | ${manifest.version} | ${manifest.license} |`,
  );
  const texts = packages.map(
    (one) => `### ${one.manifest.name} ${one.manifest.version}\n\n${readLicence(one)}`,
  );
  return [
    "# Third-party software",
    "The executable contains these packages, the Bun runtime it is compiled with (MIT, with WebKit's JavaScriptCore under LGPL-2.1 and the other parts that Bun's own LICENSE.md lists) and, in Bun, SQLite (public domain). This page is written by `scripts/third-party.ts`.",
    `| package | version | licence |\n|---|---|---|\n${rows.join("\n")}`,
    "## Licences",
    ...texts,
  ]
    .join("\n\n")
    .concat("\n");
}

/** What the dependencies reach, peers included; tools of development are not part of what is released. */
function listPackages(root: string): Package[] {
  const own = readManifest(root);
  const found = new Map<string, Package>();
  // The first lines of the page name Bun, whose parts are more than its package says.
  const tools = new Set(["bun", ...Object.keys(own.devDependencies ?? {})]);
  const open = Object.keys(own.dependencies ?? {}).map((name) => ({ name, from: root }));
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const { name, from } = next;
    const folder = findFolder(root, from, name);
    if (folder === null || tools.has(name) || found.has(folder)) continue;
    const manifest = readManifest(folder);
    if (manifest.license === undefined)
      throw new Error(`${name} names no licence: read its files and decide.`);
    found.set(folder, { folder, manifest });
    const needed = { ...manifest.dependencies, ...manifest.peerDependencies };
    open.push(...Object.keys(needed).map((one) => ({ name: one, from: folder })));
  }
  return [...found.values()].sort((left, right) => (left.manifest.name < right.manifest.name ? -1 : 1));
}

/** Where a package finds another: in its own node_modules, else in the shared one. Null: an optional one that is not installed. */
function findFolder(root: string, from: string, name: string): string | null {
  const places = [join(from, "node_modules", name), join(root, "node_modules", name)];
  return places.find((place) => existsSync(join(place, "package.json"))) ?? null;
}

function readManifest(folder: string): Manifest {
  return JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as Manifest;
}

function readLicence({ folder, manifest }: Package): string {
  const files = readdirSync(folder)
    .filter((file) => LICENCE_FILE.test(file))
    .sort();
  if (files.length === 0) return `The package holds no text; its licence is ${manifest.license}.`;
  const text = files.map((file) => readFileSync(join(folder, file), "utf8").trim()).join("\n\n");
  return text
    .split(/\r?\n/)
    .map((line) => `    ${line}`.trimEnd())
    .join("\n");
}

if (import.meta.main) {
  const root = join(import.meta.dir, "..");
  writeFileSync(join(root, "THIRD_PARTY.md"), writeThirdParty(root));
}
