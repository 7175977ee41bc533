/**
 * Writes a Debian package for each Linux system with the GNU C library, without a program of Debian. The scripts that dpkg runs are in
 * packaging/deb. The unit, the user and the settings are the files of packaging/ that the manual installation uses.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { makeAr } from "./ar.ts";
import { readCompletion } from "./archives.ts";
import { ARCHITECTURES } from "./libc.ts";
import { gzip, makeTarGz, type PackedFile, withFolders } from "./pack.ts";
import { PROJECT, type Release } from "./release.ts";
import { executableFile, type ReleasedSystem } from "./systems.ts";

/** The name of the package. The command and the unit are named relay. */
const PACKAGE = "relay-service";
/** Debian asks for an address, and the project has none. SECURITY.md names the way to report. */
const MAINTAINER = "The Relay Service authors <relay-service@localhost>";
const DOC = `./usr/share/doc/${PACKAGE}`;
const SETTINGS = "./etc/relay/relay.env";
const SCRIPTS = ["postinst", "postrm", "prerm"];

/** Writes a package for each system that Debian has. Returns their paths. */
export async function writeDebs({
  built,
  out,
  systems,
  version,
  time,
  repository,
}: Release): Promise<string[]> {
  const common = [...listFiles(), ...listPapers(version, time)];
  const paths: string[] = [];
  for (const system of systems.filter(({ libc }) => libc?.name === "glibc")) {
    const executable = readFileSync(join(built, executableFile(system)));
    const files = [{ path: "./usr/bin/relay", mode: 0o755, content: executable }, ...common];
    const content = [
      { name: "debian-binary", content: Buffer.from("2.0\n") },
      {
        name: "control.tar.gz",
        content: await makeTarGz(listControl(system, { version, repository }, files), time),
      },
      { name: "data.tar.gz", content: await makeTarGz(withFolders(files), time) },
    ];
    const path = join(out, debFile(system));
    writeFileSync(path, makeAr(content, time));
    paths.push(path);
  }
  return paths;
}

/** Returns the name of a system's package. It has no version, as the archives. */
export function debFile({ name }: ReleasedSystem): string {
  return `relay-${name}.deb`;
}

/** Returns the version in Debian's form. A tilde sorts a pre-release before its release. */
export function debVersion(version: string): string {
  return `${version.replace("-", "~")}-1`;
}

function listFiles(): PackedFile[] {
  const file = (path: string, content: string): PackedFile => ({ path, mode: 0o644, content });
  return [
    file("./usr/lib/systemd/system/relay.service", makeUnit()),
    file("./usr/lib/sysusers.d/relay.conf", readPackaging("relay.sysusers")),
    file("./usr/lib/tmpfiles.d/relay.conf", readPackaging("deb/relay.tmpfiles")),
    file(SETTINGS, makeSettings()),
    file("./usr/share/bash-completion/completions/relay", readCompletion("bash")),
    file("./usr/share/zsh/vendor-completions/_relay", readCompletion("zsh")),
    file("./usr/share/fish/vendor_completions.d/relay.fish", readCompletion("fish")),
  ];
}

function makeUnit(): string {
  return readPackaging("relay.service").replace("ExecStart=/usr/local/bin/", "ExecStart=/usr/bin/");
}

/** Returns the settings without an address, so that a new installation listens only on this machine. */
function makeSettings(): string {
  return readPackaging("relay.env").replaceAll(/^(?=RELAY_(?:BASE_URL|TRUSTED_PROXY)=)/gm, "#");
}

/** Lists the papers that Debian's policy asks for: the license and the changes, the latter compressed. */
function listPapers(version: string, time: Date): PackedFile[] {
  const zipped = (path: string, text: string): PackedFile => ({
    path: `${DOC}/${path}.gz`,
    mode: 0o644,
    content: gzip(new TextEncoder().encode(text)),
  });
  const entry = [
    `${PACKAGE} (${debVersion(version)}) stable; urgency=medium`,
    `  * Release ${version}. The file changelog.gz lists its changes.`,
    ` -- ${MAINTAINER}  ${time.toUTCString().replace("GMT", "+0000")}`,
  ];
  return [
    { path: `${DOC}/copyright`, mode: 0o644, content: makeCopyright() },
    zipped("changelog.Debian", `${entry.join("\n\n")}\n`),
    zipped("changelog", readText("CHANGELOG.md")),
  ];
}

function makeCopyright(): string {
  return `${readText("LICENSE")}
The executable also contains packages of others. The command "relay licenses" prints
their names and their licenses.
`;
}

/** Lists the files about the package itself. dpkg keeps what an administrator changed in the files of `conffiles`. */
function listControl(
  system: ReleasedSystem,
  { version, repository }: Pick<Release, "version" | "repository">,
  files: readonly PackedFile[],
): PackedFile[] {
  const bytes = files.map(({ content }) => Buffer.from(content ?? ""));
  const kibibytes = bytes.reduce((sum, { length }) => sum + Math.ceil(length / 1024), 0);
  const sums = files.map(
    ({ path }, at) =>
      `${new Bun.CryptoHasher("md5").update(bytes[at] ?? "").digest("hex")}  ${path.slice(2)}\n`,
  );
  const fields = {
    Package: PACKAGE,
    Version: debVersion(version),
    Architecture: ARCHITECTURES[system.cpu],
    Maintainer: MAINTAINER,
    "Installed-Size": kibibytes,
    Depends: "libc6 (>= 2.17), init-system-helpers (>= 1.54~), systemd",
    Section: "web",
    Priority: "optional",
    ...(repository === null ? {} : { Homepage: repository }),
    Description: describe(),
  };
  const control = Object.entries(fields).map(([name, value]) => `${name}: ${value}\n`);
  return [
    { path: "./", mode: 0o755, content: null },
    { path: "./control", mode: 0o644, content: control.join("") },
    { path: "./conffiles", mode: 0o644, content: `${SETTINGS.slice(1)}\n` },
    { path: "./md5sums", mode: 0o644, content: sums.join("") },
    ...SCRIPTS.map((name) => ({ path: `./${name}`, mode: 0o755, content: readPackaging(`deb/${name}`) })),
  ];
}

function describe(): string {
  return `server for the webhooks of payment providers
 Relay receives the webhooks of payment providers, proves each request, and does
 what your definition says, exactly once.
 .
 The service listens on 127.0.0.1:4747. The file /etc/relay/relay.env has its
 settings, and the directory /var/lib/relay has its data.`;
}

function readPackaging(name: string): string {
  return readText(`packaging/${name}`);
}

function readText(name: string): string {
  return readFileSync(join(PROJECT, name), "utf8");
}
