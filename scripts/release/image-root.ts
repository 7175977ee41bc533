/** Lists the files of the container image: the root that the executable needs, and the executable. */
import { readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { rootCertificates } from "node:tls";
import type { ContainerSettings } from "./dockerfile.ts";
import { listNeeded } from "./elf.ts";
import type { Libc } from "./libc.ts";
import type { PackedFile } from "./pack.ts";
import { PROJECT } from "./release.ts";
import type { ReleasedSystem } from "./systems.ts";

const file = (path: string, content: string | Uint8Array): PackedFile => ({ path, mode: 0o644, content });

interface Base {
  system: ReleasedSystem;
  executable: Buffer;
  libc: Libc;
  settings: ContainerSettings;
}

/** Lists what the executable needs: its libraries, the certificates of public authorities, the users, and its folders. */
export function listBase({ system, executable, libc: { files, control }, settings }: Base): PackedFile[] {
  const { User, WorkingDir } = settings;
  const [user = "", group = ""] = User.split(":");
  return [
    ...listLibraries(system, executable, files),
    file("var/lib/dpkg/status.d/libc6", control),
    file(
      "etc/os-release",
      'PRETTY_NAME="Relay Service"\nNAME="Debian GNU/Linux"\nID=debian\nVERSION_ID="12"\n',
    ),
    file("etc/nsswitch.conf", "hosts: files dns\n"),
    file(
      "etc/passwd",
      `root:x:0:0:root:/:/sbin/nologin\nrelay:x:${user}:${group}:relay:${WorkingDir}:/sbin/nologin\n`,
    ),
    file("etc/group", `root:x:0:\nrelay:x:${group}:\n`),
    // sslrootcert=system of PostgreSQL reads this file. Other connections use the same list, which Bun contains.
    file("etc/ssl/certs/ca-certificates.crt", `${rootCertificates.join("\n")}\n`),
    { path: "tmp/", mode: 0o1777, content: null },
    { path: `${WorkingDir.slice(1)}/`, mode: 0o700, content: null, owner: Number(user) },
  ];
}

/** Chooses the libraries that the executable names, its loader, and their license. */
function listLibraries(
  system: ReleasedSystem,
  executable: Buffer,
  files: readonly PackedFile[],
): PackedFile[] {
  const needed = listNeeded(executable);
  const loader = system.libc?.loader.slice(1);
  const chosen = files.filter(
    ({ path }) => needed.includes(basename(path)) || path === loader || path.endsWith("/copyright"),
  );
  const missing = needed.filter((name) => !chosen.some(({ path }) => basename(path) === name));
  if (missing.length > 0)
    throw new Error(
      `The executable for ${system.title} needs ${missing.join(" and ")}, which the C library does not have.`,
    );
  return chosen;
}

/** Lists the executable and its license. */
export function listProgram(executable: Buffer): PackedFile[] {
  return [
    { path: "usr/local/bin/relay", mode: 0o755, content: executable },
    file("usr/share/doc/relay-service/copyright", readFileSync(join(PROJECT, "LICENSE"))),
  ];
}
