/** Writes an archive for each system: the executable, the license, a README, and the completion of the shells. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { makeTarGz, makeZip, type PackedFile } from "./pack.ts";
import { PROJECT, type Release } from "./release.ts";
import { executableFile, type ReleasedSystem } from "./systems.ts";

/** The shells of a system, and the file of each one's completion. */
const UNIX_SHELLS = { bash: "relay.bash", zsh: "_relay", fish: "relay.fish" } as const;
const WINDOWS_SHELLS = { powershell: "relay.ps1" } as const;

/** Writes one archive for each system and returns their paths. */
export async function writeArchives({ built, out, systems, version, time }: Release): Promise<string[]> {
  const files: string[] = [];
  for (const system of systems) {
    const packed = listPacked(system, { built, version });
    const file = join(out, archiveFile(system));
    writeFileSync(file, system.os === "win32" ? makeZip(packed, time) : await makeTarGz(packed, time));
    files.push(file);
  }
  return files;
}

/** Returns the name of a system's archive. It has no version, so that the address of the newest release stays the same. */
export function archiveFile({ name, os }: ReleasedSystem): string {
  return `relay-${name}.${os === "win32" ? "zip" : "tar.gz"}`;
}

/** Returns the name of the executable inside an archive. */
function executableInArchive({ os }: ReleasedSystem): string {
  return os === "win32" ? "relay.exe" : "relay";
}

function listPacked(
  system: ReleasedSystem,
  { built, version }: { built: string; version: string },
): PackedFile[] {
  const shells = system.os === "win32" ? WINDOWS_SHELLS : UNIX_SHELLS;
  return [
    {
      path: executableInArchive(system),
      mode: 0o755,
      content: readFileSync(join(built, executableFile(system))),
    },
    { path: "LICENSE", mode: 0o644, content: readFileSync(join(PROJECT, "LICENSE")) },
    { path: "README.md", mode: 0o644, content: writeReadme(system, version) },
    ...Object.entries(shells).map(([shell, file]) => ({
      path: `completion/${file}`,
      mode: 0o644,
      content: readCompletion(shell),
    })),
  ];
}

function writeReadme(system: ReleasedSystem, version: string): string {
  const file = executableInArchive(system);
  return `# Relay Service ${version} for ${system.title}

\`${file}\` is the complete service. Put it into a folder of your PATH. \`relay dev --example\` starts it with an example, and
\`relay docs\` shows the documentation. \`relay licenses\` lists the packages inside. The folder \`completion\` has the completion of
the shells.
`;
}

const completions = new Map<string, string>();

/** Returns the completion that `relay completion <shell>` prints. It is the same for each system, so the command runs once for each shell. */
export function readCompletion(shell: string): string {
  const known = completions.get(shell) ?? printCompletion(shell);
  completions.set(shell, known);
  return known;
}

function printCompletion(shell: string): string {
  const command = [process.execPath, "src/main.ts", "completion", shell];
  const { RELAY_PROGRAM: _, ...env } = process.env;
  const { success, stdout, stderr } = Bun.spawnSync(command, { cwd: PROJECT, env });
  if (!success) throw new Error(`The completion of ${shell} could not be written: ${stderr}`);
  return stdout.toString();
}
