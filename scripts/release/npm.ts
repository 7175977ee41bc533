/**
 * Writes the npm packages of a release: `relay-service` with the launcher, one package with the executable of each system, and the libraries of
 * client/. npm installs the executable that fits the machine, by its fields os, cpu and libc. All packages have the version of the release. The
 * repository's own package.json stays private.
 */
import { chmodSync, constants, copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { PROJECT, type ProjectManifest, readManifest } from "./release.ts";
import { executableFile, RELEASED, type ReleasedSystem } from "./systems.ts";

/** The scope of the executables' packages. Only the owner of a scope can publish in it. */
const SCOPE = "@relay-service";
const LAUNCHER = "relay-service";

/** The folders of the libraries. Their manifests have no version and no repository. */
const LIBRARIES = ["client", "client/verifier"] as const;

interface NpmPackage {
  name: string;
  folder: string;
}

interface Target {
  /** The folder with the executables of a release. */
  built: string;
  /** The folder for the packages. Older ones in it are removed. */
  out: string;
  /** The systems whose executables are in `built`. The launcher names all released systems in any case. */
  systems?: readonly ReleasedSystem[];
}

/**
 * Writes each package into its own folder below `out`. Returns the packages in the order in which they must be published: the launcher needs
 * the others, so it is last.
 */
export function writeNpmPackages({ built, out, systems = RELEASED }: Target): NpmPackage[] {
  const project = readManifest();
  rmSync(out, { recursive: true, force: true });
  const executables = systems.map((system) => writeExecutablePackage(system, { built, out, project }));
  const libraries = LIBRARIES.map((source) => writeLibraryPackage(source, { out, project }));
  return [...executables, ...libraries, writeLauncherPackage({ out, project })];
}

function writeLibraryPackage(
  source: (typeof LIBRARIES)[number],
  { out, project }: { out: string; project: ProjectManifest },
): NpmPackage {
  const read = (file: string): string => readFileSync(join(PROJECT, source, file), "utf8");
  const manifest = JSON.parse(read("package.json")) as { name: string; files: readonly string[] };
  const folder = join(out, manifest.name);
  writeFolder(folder, {
    "package.json": { ...manifest, ...factsOf(project) },
    ...Object.fromEntries(["README.md", ...manifest.files].map((file) => [file, read(file)])),
  });
  return { name: manifest.name, folder };
}

/** The fields that every package of a release has. */
function factsOf({ version, license, repository }: ProjectManifest) {
  const origin = repository === undefined ? {} : { repository };
  return { version, license, ...origin, publishConfig: { access: "public" } };
}

function writeExecutablePackage(
  system: ReleasedSystem,
  { built, out, project }: { built: string; out: string; project: ProjectManifest },
): NpmPackage {
  const name = packageName(system);
  const folder = join(out, name);
  const file = fileInPackage(system);
  writeFolder(folder, {
    "package.json": {
      name,
      description: `The executable of ${LAUNCHER} for ${system.title}.`,
      ...factsOf(project),
      os: [system.os],
      cpu: [system.cpu],
      ...(system.libc === null ? {} : { libc: [system.libc.name] }),
      files: [file],
      // Yarn must write the executable to the disk, because no system starts a file inside an archive.
      preferUnplugged: true,
    },
    "README.md": `# ${name}\n\nThe executable of ${LAUNCHER} for ${system.title}. Install ${LAUNCHER}, which adds this package.\n`,
  });
  copyFileSync(join(built, executableFile(system)), join(folder, file), constants.COPYFILE_FICLONE);
  chmodSync(join(folder, file), 0o755);
  return { name, folder };
}

function writeLauncherPackage({ out, project }: { out: string; project: ProjectManifest }): NpmPackage {
  const folder = join(out, LAUNCHER);
  const systems = RELEASED.map((system) => ({
    title: system.title,
    os: system.os,
    cpu: system.cpu,
    loader: system.libc?.loader ?? null,
    package: packageName(system),
    file: fileInPackage(system),
  }));
  const rows = RELEASED.map((system) => `- ${system.title}: \`${packageName(system)}\``);
  const readme = readFileSync(join(import.meta.dir, "npm-readme.md"), "utf8");
  writeFolder(folder, {
    "package.json": {
      name: LAUNCHER,
      description: project.description,
      ...factsOf(project),
      bin: { relay: "relay.cjs" },
      files: ["relay.cjs", "systems.json"],
      engines: { node: project.engines.node },
      optionalDependencies: Object.fromEntries(RELEASED.map((one) => [packageName(one), project.version])),
    },
    "README.md": readme.replace("SYSTEMS", rows.join("\n")),
    "systems.json": systems,
    "relay.cjs": readFileSync(join(import.meta.dir, "launcher.cjs"), "utf8"),
  });
  chmodSync(join(folder, "relay.cjs"), 0o755);
  return { name: LAUNCHER, folder };
}

function packageName({ name }: ReleasedSystem): string {
  return `${SCOPE}/${name}`;
}

function fileInPackage({ os }: ReleasedSystem): string {
  return os === "win32" ? "relay.exe" : "relay";
}

/** Writes the files of a package with the license, all readable by everyone. A value that is no text is written as JSON. */
function writeFolder(folder: string, files: Record<string, unknown>): void {
  mkdirSync(folder, { recursive: true });
  copyFileSync(join(PROJECT, "LICENSE"), join(folder, "LICENSE"));
  for (const [name, content] of Object.entries(files)) {
    const text = typeof content === "string" ? content : `${JSON.stringify(content, null, 2)}\n`;
    writeFileSync(join(folder, name), text, { mode: 0o644 });
  }
}
