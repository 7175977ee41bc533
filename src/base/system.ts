/**
 * Describes what differs between operating systems: folders, modes, signals, flushes, programs and quotes. No other module of the service asks which
 * system it runs on. Tests use the description of each system on any of them. A lock is the same on each: SQLite's lock of a file.
 */
import { existsSync, statSync } from "node:fs";
import { posix } from "node:path";

type Env = Readonly<Record<string, string | undefined>>;

export interface System {
  /** The value of `process.platform`. */
  platform: "linux" | "darwin" | "win32";
  /** Returns the folder for the user's settings of all programs, or null if this user has none. */
  settingsFolder(env: Env): string | null;
  /** Returns the command that opens a web address in the browser, or null if no browser can show it. */
  browserCommand(url: string, env: Env): string[] | null;
  /** The path of the terminal that the process belongs to. */
  terminal: string;
  /** The path of the file that discards output and is a character device, as terminals are. Null if there is none. */
  nullDevice: string | null;
  /** The signals that ask a process to stop. On Windows, Ctrl+C, Ctrl+Break and a closed console become signals. */
  stopSignals: readonly NodeJS.Signals[];
  /** True if files have an owner and a mode with rights for others. Windows has access lists, which nothing here reads. */
  hasModes: boolean;
  /** True if a folder must be flushed before its new entries survive a power cut. Windows cannot do this and does not need it. */
  flushesFolders: boolean;
  /** True if a file can replace another one that this process has open. */
  replacesOpenFiles: boolean;
  /** The folder in which the process finds its own arguments in memory, or null if there is none. */
  processFolder: string | null;
  /** Quotes a path in a command that a user copies into a shell. */
  quote(path: string): string;
}

/** Matches a path that needs no quotes in a shell. */
const PLAIN_PATH = /^[\w./:@-]+$/;
const PLAIN_WINDOWS_PATH = /^[\w.\\/:-]+$/;

const unix = {
  terminal: "/dev/tty",
  nullDevice: "/dev/null",
  stopSignals: ["SIGINT", "SIGTERM"],
  hasModes: true,
  flushesFolders: true,
  replacesOpenFiles: true,
  quote: (path: string) => (PLAIN_PATH.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`),
} as const;

/** Returns a folder in the user's home, or null without a home. */
function inHome(env: Env, ...folders: readonly string[]): string | null {
  const home = env.HOME || env.USERPROFILE;
  return home ? posix.join(home, ...folders) : null;
}

const linux: System = {
  ...unix,
  platform: "linux",
  settingsFolder: (env) => env.XDG_CONFIG_HOME || inHome(env, ".config"),
  browserCommand: (url, env) => (env.DISPLAY || env.WAYLAND_DISPLAY ? ["xdg-open", url] : null),
  processFolder: "/proc/self",
};

const macos: System = {
  ...unix,
  platform: "darwin",
  settingsFolder: (env) => env.XDG_CONFIG_HOME || inHome(env, "Library", "Application Support"),
  browserCommand: (url) => ["open", url],
  processFolder: null,
};

const windows: System = {
  platform: "win32",
  settingsFolder: (env) => env.XDG_CONFIG_HOME || env.APPDATA || null,
  browserCommand: (url) => ["rundll32", "url.dll,FileProtocolHandler", url],
  terminal: "\\\\.\\CONIN$",
  nullDevice: null,
  stopSignals: ["SIGINT", "SIGBREAK", "SIGHUP"],
  hasModes: false,
  flushesFolders: false,
  replacesOpenFiles: false,
  processFolder: null,
  // Both cmd and PowerShell read double quotes, and no path contains one.
  quote: (path) => (PLAIN_WINDOWS_PATH.test(path) ? path : `"${path}"`),
};

/** The systems of the released executables. */
export const SYSTEMS = { linux, macos, windows } as const;

/** The system that this process runs on. Another Unix is treated as Linux. */
export const SYSTEM: System =
  Object.values(SYSTEMS).find(({ platform }) => platform === process.platform) ?? linux;

const OTHERS = 0o077;

/** Reports whether the mode of a file lets other users of this machine use it. False for a missing file, and on a system without modes. */
export function isOpenToOthers(path: string, { hasModes }: System = SYSTEM): boolean {
  return hasModes && existsSync(path) && (statSync(path).mode & OTHERS) !== 0;
}

/** Reports whether a process runs, also one of another user. On Windows a process keeps the number of a parent that has ended. */
export function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as { code?: string }).code !== "ESRCH";
  }
}
