/** Writes the files of the installers that fetch the archives: the install script, the formula for Homebrew and the manifest for Scoop. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { archiveFile } from "./archives.ts";
import { hashFile } from "./checksums.ts";
import { type Release, readManifest, releasesUrl } from "./release.ts";
import type { ReleasedSystem } from "./systems.ts";

const SUMMARY = "Run actions exactly once for the events that providers send";
/** The words of `uname -s`. */
const KERNELS: Partial<Record<ReleasedSystem["os"], string>> = { linux: "Linux", darwin: "Darwin" };

/** Writes `install.sh`. Without a repository, its user must name the address of the releases. */
export function writeInstallScript({ out, systems, version, repository }: Release): string[] {
  const rows = systems.flatMap(({ os, cpu, libc, name }) => {
    const kernel = KERNELS[os];
    return kernel === undefined ? [] : [`${kernel} ${cpu} ${libc?.loader ?? "-"} ${name}`];
  });
  const text = readFileSync(join(import.meta.dir, "install.sh"), "utf8")
    .replace("\nSYSTEMS\n", `\n${rows.join("\n")}\n`)
    .replace("{RELAY_DOWNLOAD_URL:-DOWNLOAD_URL}", `{RELAY_DOWNLOAD_URL:-${releasesUrl(repository) ?? ""}}`)
    .replaceAll(/(?<![A-Z_])DOWNLOAD_URL/g, releasesUrl(repository) ?? "$RELAY_DOWNLOAD_URL")
    .replaceAll(/(?<![A-Z_])VERSION/g, version);
  const file = join(out, "install.sh");
  writeFileSync(file, text, { mode: 0o755 });
  return [file];
}

/** Writes `relay-service.rb` for a tap of Homebrew. Returns no file without a repository, because a formula has the addresses of the archives. */
export function writeFormula(release: Release): string[] {
  const { out, version, repository } = release;
  if (repository === null) return [];
  const forSystem = (os: ReleasedSystem["os"], cpu: ReleasedSystem["cpu"]): string => {
    // Homebrew on Linux runs with the GNU C library.
    const system = release.systems.find(
      (one) => one.os === os && one.cpu === cpu && one.libc?.name !== "musl",
    );
    if (system === undefined) return "";
    return `    on_${cpu === "arm64" ? "arm" : "intel"} do
      url "${archiveUrl(release, system)}"
      sha256 "${hashFile(join(out, archiveFile(system)))}"
    end
`;
  };
  const text = `class RelayService < Formula
  desc "${SUMMARY}"
  homepage "${repository}"
  version "${version}"
  license "${readManifest().license}"

  on_macos do
${forSystem("darwin", "arm64")}${forSystem("darwin", "x64")}  end

  on_linux do
${forSystem("linux", "arm64")}${forSystem("linux", "x64")}  end

  def install
    bin.install "relay"
    bash_completion.install "completion/relay.bash" => "relay"
    zsh_completion.install "completion/_relay"
    fish_completion.install "completion/relay.fish"
  end

  test do
    assert_equal version.to_s, shell_output("#{bin}/relay --version").strip
  end
end
`;
  const file = join(out, "relay-service.rb");
  writeFileSync(file, text);
  return [file];
}

/** Writes `relay-service.json` for a bucket of Scoop. Returns no file without a repository or without an executable for Windows. */
export function writeScoopManifest(release: Release): string[] {
  const { out, version, repository } = release;
  const system = release.systems.find(({ os, cpu }) => os === "win32" && cpu === "x64");
  if (repository === null || system === undefined) return [];
  const manifest = {
    version,
    description: SUMMARY,
    homepage: repository,
    license: readManifest().license,
    architecture: {
      "64bit": {
        url: archiveUrl(release, system),
        hash: hashFile(join(out, archiveFile(system))),
      },
    },
    bin: "relay.exe",
    checkver: { github: repository },
    autoupdate: {
      architecture: { "64bit": { url: archiveUrl({ repository, version: "$version" }, system) } },
      hash: { url: "$baseurl/checksums.txt" },
    },
  };
  const file = join(out, "relay-service.json");
  writeFileSync(file, `${JSON.stringify(manifest, null, 2)}\n`);
  return [file];
}

function archiveUrl(
  { repository, version }: Pick<Release, "repository" | "version">,
  system: ReleasedSystem,
): string {
  return `${releasesUrl(repository)}/download/v${version}/${archiveFile(system)}`;
}
