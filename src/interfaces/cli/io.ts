/**
 * What a command may touch of the process it runs in: its streams, its variables, its folder, and the service it can start. Nothing else of
 * the command line touches the process itself.
 */

import { closeSync, openSync, readSync, rmSync, writeFileSync, writeSync } from "node:fs";
import { hostname, userInfo } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";
import { afterUnlessEnded, type Clock, systemClock } from "../../base/clock.ts";
import type { ServiceConfig } from "../../base/config.ts";
import { showControls } from "../../base/log.ts";
import { standardError, standardOutput } from "../../base/output.ts";
import type { Scheduler } from "../../engine/schedule/schedule.ts";
import type { ProjectFolder } from "../../operator/sync/local-sync.ts";
import type { Sealer } from "../../platform/secret/seal.ts";
import type { Store } from "../../store/port.ts";
import type { Docs } from "../docs/docs.ts";
import { findPager, isLong, runPager } from "./terminal/pager.ts";
import { keepPaint, readScreen, type Screen } from "./terminal/screen.ts";
import { cutTo } from "./terminal/table.ts";

/** A started service, as the commands need it. Disposing it stops it gracefully. */
export interface RunningService extends AsyncDisposable {
  /** Where it listens, without a trailing slash. */
  readonly url: string;
  /** The public origin; receiver URLs begin with it. */
  readonly baseUrl: string;
  readonly port: number;
  readonly store: Store;
  readonly sealer: Sealer;
  readonly scheduler: Pick<Scheduler, "recordDue">;
  /** From now on what is saved over HTTP is written to the files of this folder. */
  useFolder(folder: ProjectFolder | null): void;
  /** One of several nodes goes on for a moment, so that nobody is sent to it any more when it ends. */
  leave(): Promise<void>;
  /** A one-time link into the dashboard (local) or to the first set-up (server); null once an owner exists. */
  makeSigninLink(): Promise<string | null>;
}

/** `stopped` ends a start that waits for its disk or its database; it rejects then. `program`: what the commands in its lines begin with. */
type StartService = (
  config: ServiceConfig,
  ports: { stopped: Promise<unknown>; program: string; printRun?: (line: string) => void },
) => Promise<RunningService>;

export interface World {
  clock: Clock;
  env: Readonly<Record<string, string | undefined>>;
  cwd: string;
  /** What the machine is called, and who is signed in to it, where that is known. */
  machine: { name: string; account: string };
  /** Whether a person sits at it: standard output is a terminal. */
  interactive: boolean;
  /** What standard output can show. */
  screen: Screen;
  /** Data: one line (or more) on standard output. */
  say(text: string): void;
  /** As `say`, of text that was painted for the screen. */
  draw(text: string): void;
  /** Shows it through a pager; false: there is none. */
  page(text: string): Promise<boolean>;
  /** A line on standard error that the next one takes the place of; null takes it away. Only where `watched`. */
  redraw(text: string | null): void;
  /** Talk: one line (or more) on standard error. */
  tell(text: string): void;
  /** All of standard input. */
  readInput(): Promise<string>;
  /** The same, as it comes. */
  readInputBytes(): Promise<Uint8Array>;
  /** Asks the person a question that y answers with yes, and anything else with no. */
  confirm(question: string): Promise<boolean>;
  /** As `confirm`, also where standard input is taken; null where there is no terminal to ask at. */
  confirmAside(question: string): Promise<boolean | null>;
  /** Whether what is told is seen as it is told: standard error is a terminal. */
  watched: boolean;
  /** How long a server is waited for, where it is less than usual. */
  patienceMs?: number;
  /** Standard input, line by line. */
  inputLines(): AsyncIterable<string>;
  /** Resolves on SIGINT or SIGTERM; a second one ends the process at once. `over`: nothing is waited for any more. */
  untilStopped(over?: AbortSignal): Promise<void>;
  /** The process has so long to end by itself; after that it says why it did not, and ends with 1. The answer gives it all the time again. */
  endWithin(ms: number, why: string): () => void;
  /** Opens a one-time link in the person's browser, over a page in this folder of theirs; answers whether something opened it. */
  openBrowser(link: string, folder: string): Promise<boolean>;
  startService: StartService;
  /** The documentation. */
  readManual(): Promise<Docs>;
}

/** `relay`, `npm run relay --` or `bun run relay`. */
export function programWord({ env }: World): string {
  const script = env.npm_lifecycle_event;
  if (script !== "start" && script !== "relay") return "relay";
  return env.npm_config_user_agent?.startsWith("bun") === true ? "bun run relay" : "npm run relay --";
}

/** A terminal's Ctrl+C may arrive twice, once from the terminal and once through a package runner. */
const SAME_SIGNAL_MS = 200;

/** How often the launcher is looked for. */
const LOOK_EVERY_MS = 500;

/** Files and folders that the process makes are its user's alone: most hold people's data, or secrets. */
const OWNER_ONLY = 0o077;

/** The process's streams, variables and signals; what it starts is given. */
export function processWorld(parts: Pick<World, "startService" | "readManual">): World {
  process.umask(OWNER_ONLY);
  let stays = false;
  process.on("exit", (code) => {
    // Whoever asked for data did not get it; a server that was asked for none goes on without its lines.
    if (code === 0 && !stays && standardOutput.dropped > 0) process.exitCode = 1;
  });
  const screen = readScreen(process.stdout, process.env);
  const line = new RedrawnLine();
  return {
    ...parts,
    clock: systemClock,
    env: process.env,
    cwd: process.cwd(),
    machine: readMachine(),
    interactive: process.stdout.isTTY === true && process.stdin.isTTY === true,
    screen,
    say: (text) => standardOutput.write(line.before(showControls(text))),
    draw: (text) => standardOutput.write(line.before(keepPaint(text))),
    page: (text) => pageText(text, screen),
    redraw: (text) => line.draw(text),
    tell: (text) => standardError.write(line.before(showControls(text))),
    readInput: () => Bun.stdin.text(),
    readInputBytes: () => Bun.stdin.bytes(),
    confirm,
    confirmAside,
    watched: process.stderr.isTTY === true && process.env.TERM !== "dumb",
    inputLines: () => createInterface({ input: process.stdin, crlfDelay: Number.POSITIVE_INFINITY }),
    untilStopped: (over) => {
      stays ||= over === undefined;
      return untilStopped(over);
    },
    endWithin(ms, why) {
      return afterUnlessEnded(ms, () => {
        standardError.write(why);
        process.exit(1);
      });
    },
    openBrowser,
  };
}

async function pageText(text: string, { columns, rows, clever }: Screen): Promise<boolean> {
  if (columns === null || rows === null || !clever || !isLong(text, columns, rows)) return false;
  const command = findPager(process.env);
  return command !== null && (await runPager(command, keepPaint(text), process.env));
}

const CLEAR_LINE = "\r\u001b[K";

/** A line of standard error that the next one takes the place of; it is gone before anything else is written. */
class RedrawnLine {
  #drawn = false;

  draw(text: string | null): void {
    if (text === null && !this.#drawn) return;
    this.#drawn = text !== null;
    const room = (process.stderr.columns || 80) - 1;
    try {
      writeSync(process.stderr.fd, CLEAR_LINE + (text === null ? "" : cutTo(showControls(text), room)));
    } catch {
      // Nobody looks at it any more.
    }
  }

  before(text: string): string {
    this.draw(null);
    return text;
  }
}

function readMachine(): World["machine"] {
  try {
    return { name: hostname(), account: userInfo().username };
  } catch {
    // A container's user may have a number and no name.
    return { name: hostname(), account: "" };
  }
}

function confirm(question: string): Promise<boolean> {
  const reader = createInterface({ input: process.stdin, output: process.stderr });
  return new Promise((resolve) => {
    reader.once("close", () => resolve(false));
    reader.question(`${showControls(question)} [y/N] `, (answer) => {
      resolve(/^y(es)?$/i.test(answer.trim()));
      reader.close();
    });
  });
}

/**
 * Asks at the process's own terminal where standard input is a file. It is read in one piece and not as a stream, which would keep the process
 * after the answer.
 */
async function confirmAside(question: string): Promise<boolean | null> {
  if (process.stderr.isTTY !== true) return null;
  if (process.stdin.isTTY === true) return await confirm(question);
  const terminal = openTerminal();
  if (terminal === null) return null;
  try {
    writeSync(process.stderr.fd, `${showControls(question)} [y/N] `);
    const answer = Buffer.alloc(MAX_ANSWER_BYTES);
    return /^y(es)?$/i.test(answer.toString("utf8", 0, readSync(terminal, answer)).trim());
  } catch {
    return false;
  } finally {
    closeSync(terminal);
  }
}

const MAX_ANSWER_BYTES = 256;

function openTerminal(): number | null {
  try {
    return openSync(process.platform === "win32" ? "\\\\.\\CONIN$" : "/dev/tty", "r");
  } catch {
    return null;
  }
}

function untilStopped(over?: AbortSignal): Promise<void> {
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
    over?.addEventListener("abort", () => {
      process.off("SIGINT", onSignal);
      process.off("SIGTERM", onSignal);
      stopLooking();
      resolve();
    });
  });
}

/** Under the launcher of the package scripts: it may be killed without a word, and what it started is then stopped as by a signal. */
function watchLauncher(stop: () => void): () => void {
  const parent = Number(process.env.RELAY_PARENT_PID || Number.NaN);
  if (Number.isNaN(parent)) return () => undefined;
  const look = (): void => {
    if (process.ppid === parent && isAlive(parent)) cancel = afterUnlessEnded(LOOK_EVERY_MS, look);
    else stop();
  };
  let cancel = afterUnlessEnded(LOOK_EVERY_MS, look);
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
