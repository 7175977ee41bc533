/** Finds how this executable was installed, by its path, and names the command that upgrades it. It runs nothing. */

/** The parts of a process that tell how it was installed. */
interface Installed {
  /** The path of the executable without links, or of the runtime if the sources run. */
  executable: string;
  /** True if a compiled executable runs, and not the sources. */
  isCompiled: boolean;
  /** The words that started it, if a launcher did. */
  program: string;
  /** The processor in the names of a release, such as x64. */
  cpu: string;
  /** The home folder of the user. */
  home: string;
  /** True in a pod of Kubernetes. */
  isPod: boolean;
  /** Reports whether a file exists. */
  exists(path: string): boolean;
  /** Returns a path as a shell of this system reads it. */
  quote(path: string): string;
  /** The address of the releases, for the commands that download; null if there is none. */
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

/** The unit of an installation by hand. */
const UNIT_FILE = "/etc/systemd/system/relay.service";
/** The folders in which npm installs commands on Unix and on Windows, and Bun. A project has another folder. */
const GLOBAL_FOLDER = /\/lib\/node_modules\/|\/(npm|nodejs)\/node_modules\/|\/\.bun\//i;

/** Finds how this executable was installed, from its path, its launcher and the files that a package leaves. The first match counts. */
export function findChannel(installed: Installed): Channel {
  const { isCompiled, exists, releases, cpu } = installed;
  const path = installed.executable.replaceAll("\\", "/");
  if (!isCompiled) return { name: "the sources", upgrade: ["git pull", "npm run build"] };
  if (path.includes("/node_modules/")) return findPackage(path, installed.program);
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
  if (path === "/usr/bin/relay" && exists(DEBIAN_FILE)) {
    const name = "the Debian package";
    if (releases === null) return { name, upgrade: ["sudo apt install ./<the newer package>.deb"] };
    const file = `relay-linux-${cpu}.deb`;
    return {
      name,
      upgrade: [`curl -fsSLO ${releases}/latest/download/${file}`, `sudo apt install ./${file}`],
    };
  }
  // In a home folder, a person installed it, also inside a container.
  const isOwn = path.startsWith(`${installed.home}/`);
  if (!isOwn && installed.isPod)
    return { name: "Kubernetes", upgrade: ["set the new image in the manifest, then apply it"] };
  if (!isOwn && CONTAINER_FILES.some(exists))
    return { name: "a container", upgrade: ["build or pull the new image, then start it"] };
  if (releases !== null && path.endsWith("/relay"))
    return { name: "the executable", upgrade: makeScript(path, releases, installed) };
  return {
    name: "the executable",
    upgrade: ["replace the executable with the newer one, then restart the server"],
  };
}

/** Finds how a package of npm was installed: for one command, for the machine or the user, or for a project. */
function findPackage(path: string, program: string): Channel {
  if (path.includes("/_npx/")) return { name: "npx", upgrade: ["npx relay-service@latest <command>"] };
  if (path.includes("/bunx-")) return { name: "bunx", upgrade: ["bunx relay-service@latest <command>"] };
  if (GLOBAL_FOLDER.test(path))
    return path.includes("/.bun/")
      ? { name: "Bun", upgrade: ["bun add --global relay-service@latest"] }
      : { name: "npm", upgrade: ["npm install --global relay-service@latest"] };
  return program.startsWith("bunx ")
    ? { name: "Bun in a project", upgrade: ["bun add relay-service@latest"] }
    : { name: "npm in a project", upgrade: ["npm install relay-service@latest"] };
}

/** Returns the install script for the folder of the executable, and the restart of the unit that runs it. */
function makeScript(
  path: string,
  releases: string,
  { home, quote, exists, isMirror }: Pick<Installed, "home" | "quote" | "exists" | "isMirror">,
): string[] {
  const folder = path.slice(0, -"/relay".length);
  const isOwn = folder.startsWith(`${home}/`);
  const words = [
    ...(isOwn ? [] : ["sudo"]),
    ...(folder === `${home}/.local/bin` ? [] : [`RELAY_INSTALL_DIR=${quote(folder)}`]),
    ...(isMirror ? [`RELAY_DOWNLOAD_URL=${releases}`] : []),
    "sh",
  ];
  const script = `curl -fsSL ${releases}/latest/download/install.sh | ${words.join(" ")}`;
  return isOwn || !exists(UNIT_FILE) ? [script] : [script, "sudo systemctl restart relay"];
}
