/** Finds how this executable was installed, by its path, and names the command that upgrades it. It runs nothing. */

/** The parts of a process that tell how it was installed. */
interface Installed {
  /** The path of the executable without links, or of the runtime if the sources run. */
  executable: string;
  /** True if a compiled executable runs, and not the sources. */
  isCompiled: boolean;
  /** The words that started it, if a launcher did. */
  program: string;
  /** Reports whether a file exists. */
  exists(path: string): boolean;
  /** The address of the releases, for the install script; null if there is none. */
  releases: string | null;
  /** True if that address is not the one of the build. */
  isMirror: boolean;
}

interface Channel {
  /** The name in a sentence. */
  name: string;
  /** The commands, one a line. A text in < and > is the user's own. */
  upgrade: readonly string[];
}

/** The license that the Debian package installs. Every package must have this file. */
const DEBIAN_FILE = "/usr/share/doc/relay-service/copyright";
/** Engines create one of these files in each container. */
const CONTAINER_FILES = ["/.dockerenv", "/run/.containerenv"];

/** Finds how this executable was installed, from its path, its launcher and the files that a package leaves. The first match counts. */
export function findChannel({
  executable,
  isCompiled,
  program,
  exists,
  releases,
  isMirror,
}: Installed): Channel {
  const path = executable.replaceAll("\\", "/");
  if (!isCompiled) return { name: "the sources", upgrade: ["git pull", "npm run build"] };
  if (program.startsWith("bunx ")) return { name: "bunx", upgrade: ["bunx relay-service@latest <command>"] };
  if (program.startsWith("npx ")) return { name: "npx", upgrade: ["npx relay-service@latest <command>"] };
  if (path.includes("/node_modules/")) {
    const isBun = path.includes("/.bun/");
    return {
      name: isBun ? "Bun" : "npm",
      upgrade: [
        isBun ? "bun add --global relay-service@latest" : "npm install --global relay-service@latest",
      ],
    };
  }
  if (path.includes("/Cellar/"))
    return {
      name: "Homebrew",
      upgrade: [
        ...(releases === null
          ? []
          : [
              `curl -fsSL -o "$(brew --repository local/relay)/Formula/relay-service.rb" ${releases}/latest/download/relay-service.rb`,
            ]),
        "brew upgrade local/relay/relay-service",
      ],
    };
  if (/\/scoop\/apps\//i.test(path))
    return { name: "Scoop", upgrade: ["scoop update", "scoop update relay-service"] };
  if (path === "/usr/bin/relay" && exists(DEBIAN_FILE))
    return { name: "the Debian package", upgrade: ["sudo apt install ./<the newer package>.deb"] };
  if (CONTAINER_FILES.some(exists))
    return { name: "a container", upgrade: ["docker compose build --pull", "docker compose up --detach"] };
  if (releases !== null && path.endsWith("/relay"))
    return {
      name: "the executable",
      upgrade: [
        `curl -fsSL ${releases}/latest/download/install.sh | ${isMirror ? `RELAY_DOWNLOAD_URL=${releases} ` : ""}sh`,
      ],
    };
  return {
    name: "the executable",
    upgrade: ["replace the executable with the newer one, then restart the server"],
  };
}
