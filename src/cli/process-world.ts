/** The world of a real process. It is the only place of the command line that touches the process itself. */
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { systemClock } from "../ground/clock.ts";
import { showControls } from "../ground/log.ts";
import { standardError, standardOutput } from "../ground/output.ts";
import type { World } from "./world.ts";

/** A terminal's Ctrl+C may arrive twice, once from the terminal and once through a package runner. */
const SAME_SIGNAL_MS = 200;

/** How often the launcher is looked for. */
const LOOK_EVERY_MS = 500;

/** Files and folders that the process makes are its user's alone: most hold people's data, or secrets. */
const OWNER_ONLY = 0o077;

/** The process's streams, variables and signals; what it starts is given. */
export function processWorld(parts: Pick<World, "startService" | "resetUrl">): World {
  process.umask(OWNER_ONLY);
  let stays = false;
  process.on("exit", (code) => {
    // Whoever asked for data did not get it; a server that was asked for none goes on without its lines.
    if (code === 0 && !stays && standardOutput.dropped > 0) process.exitCode = 1;
  });
  return {
    ...parts,
    clock: systemClock,
    env: process.env,
    cwd: process.cwd(),
    interactive: process.stdout.isTTY === true && process.stdin.isTTY === true,
    say: (text) => standardOutput.write(showControls(text)),
    tell: (text) => standardError.write(showControls(text)),
    readInput: () => Bun.stdin.text(),
    untilStopped: () => {
      stays = true;
      return untilStopped();
    },
    openBrowser,
  };
}

function untilStopped(): Promise<void> {
  return new Promise((resolve) => {
    let first: number | null = null;
    const onSignal = (): void => {
      const now = systemClock.monotonicMs();
      if (first !== null && now - first > SAME_SIGNAL_MS) process.exit(1);
      first ??= now;
      stopLooking();
      resolve();
    };
    process.on("SIGINT", onSignal);
    process.on("SIGTERM", onSignal);
    const stopLooking = watchLauncher(onSignal);
  });
}

/** Under the launcher of the package scripts: it may be killed without a word, and what it started is then stopped as by a signal. */
function watchLauncher(stop: () => void): () => void {
  const parent = Number(process.env.RELAY_PARENT_PID || Number.NaN);
  if (Number.isNaN(parent)) return () => undefined;
  const look = (): void => {
    if (process.ppid === parent && isAlive(parent)) cancel = systemClock.after(LOOK_EVERY_MS, look);
    else stop();
  };
  let cancel = systemClock.after(LOOK_EVERY_MS, look);
  return () => cancel();
}

/** On Windows a process keeps the number of a parent that is gone. */
function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

/**
 * A one-time link opens the dashboard, and whoever is on this machine can read the arguments of every process: what is opened is a page of
 * the user's own that leads on to it.
 */
async function openBrowser(link: string, folder: string): Promise<boolean> {
  if (process.platform === "linux" && !process.env.DISPLAY && !process.env.WAYLAND_DISPLAY) return false;
  const url = pathToFileURL(writeLeadingPage(link, folder)).href;
  const command =
    process.platform === "darwin"
      ? ["open", url]
      : process.platform === "win32"
        ? ["rundll32", "url.dll,FileProtocolHandler", url]
        : ["xdg-open", url];
  try {
    const child = Bun.spawn(command, { stdin: "ignore", stdout: "ignore", stderr: "ignore" });
    child.unref();
    return true;
  } catch {
    return false;
  }
}

/** Written anew beside the data, readable for its user alone; it is worth nothing once the link was opened. */
function writeLeadingPage(link: string, folder: string): string {
  const file = join(folder, "open.html");
  const target = JSON.stringify(link).replaceAll("<", "\\u003c");
  rmSync(file, { force: true });
  writeFileSync(
    file,
    `<!doctype html><meta charset="utf-8"><meta name="referrer" content="no-referrer"><title>Relay</title><script>location.replace(${target})</script>\n`,
    { flag: "wx", mode: 0o600 },
  );
  return file;
}
