/** The world of a real process. It is the only place of the command line that touches the process itself. */
import { systemClock } from "../ground/clock.ts";
import type { World } from "./world.ts";

/** A terminal's Ctrl+C may arrive twice, once from the terminal and once through a package runner. */
const SAME_SIGNAL_MS = 200;

/** Files and folders that the process makes are its user's alone: most hold people's data, or secrets. */
const OWNER_ONLY = 0o077;

/** The process's streams, variables and signals; what it starts is given. */
export function processWorld(parts: Pick<World, "startService" | "resetUrl">): World {
  process.umask(OWNER_ONLY);
  return {
    ...parts,
    clock: systemClock,
    env: process.env,
    cwd: process.cwd(),
    interactive: process.stdout.isTTY === true && process.stdin.isTTY === true,
    say: (text) => void process.stdout.write(`${showControls(text)}\n`),
    tell: (text) => void process.stderr.write(`${showControls(text)}\n`),
    readInput: () => Bun.stdin.text(),
    untilStopped,
    openBrowser,
  };
}

const CONTROL = /[^\P{Cc}\n\t]/gu;

/** What others wrote (a name, a payload, a file's name) never steers the terminal; in JSON this writes the same text. */
export function showControls(text: string): string {
  return text.replace(CONTROL, (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

function untilStopped(): Promise<void> {
  return new Promise((resolve) => {
    let first: number | null = null;
    const onSignal = (): void => {
      const now = systemClock.monotonicMs();
      if (first !== null && now - first > SAME_SIGNAL_MS) process.exit(1);
      first ??= now;
      resolve();
    };
    process.on("SIGINT", onSignal);
    process.on("SIGTERM", onSignal);
  });
}

async function openBrowser(url: string): Promise<boolean> {
  const command =
    process.platform === "darwin"
      ? ["open", url]
      : process.platform === "win32"
        ? ["rundll32", "url.dll,FileProtocolHandler", url]
        : ["xdg-open", url];
  if (process.platform === "linux" && !process.env.DISPLAY && !process.env.WAYLAND_DISPLAY) return false;
  try {
    const child = Bun.spawn(command, { stdin: "ignore", stdout: "ignore", stderr: "ignore" });
    child.unref();
    return true;
  } catch {
    return false;
  }
}
