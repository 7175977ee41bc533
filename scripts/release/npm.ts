/**
 * Writes the npm packages of a release: `relay-service` with the launcher, and one package with the executable of each system. npm installs the
 * one that fits the machine, by its fields os, cpu and libc. Their manifests are generated; the repository's own package.json stays private.
 */
import { chmodSync, constants, copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { PROJECT, type ProjectManifest, readManifest } from "./release.ts";
import { executableFile, RELEASED, type ReleasedSystem } from "./systems.ts";

/** The scope of the executables' packages. Only the owner of a scope can publish in it. */
const SCOPE = "@relay-service";
const LAUNCHER = "relay-service";

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
  return [...executables, writeLauncherPackage({ out, project })];
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
      version: project.version,
      description: `The executable of ${LAUNCHER} for ${system.title}.`,
      license: project.license,
      ...(project.repository === undefined ? {} : { repository: project.repository }),
      os: [system.os],
      cpu: [system.cpu],
      ...(system.libc === null ? {} : { libc: [system.libc.name] }),
      files: [file],
      // Yarn must write the executable to the disk, because no system starts a file inside an archive.
      preferUnplugged: true,
      publishConfig: { access: "public" },
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
      version: project.version,
      description: project.description,
      license: project.license,
      ...(project.repository === undefined ? {} : { repository: project.repository }),
      bin: { relay: "relay.cjs" },
      files: ["relay.cjs", "systems.json"],
      engines: { node: project.engines.node },
      optionalDependencies: Object.fromEntries(RELEASED.map((one) => [packageName(one), project.version])),
      publishConfig: { access: "public" },
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
