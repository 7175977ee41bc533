/**
 * Gives a command access to the process: its streams, its variables, its folder, and the service that it can start. No other part of the
 * command line uses the process directly.
 */

import { closeSync, openSync, readSync, rmSync, writeFileSync, writeSync } from "node:fs";
import { hostname, userInfo } from "node:os";
import { join } from "node:path";
import { afterUnlessEnded, type Clock, systemClock } from "../../base/clock.ts";
import type { ServiceConfig } from "../../base/config.ts";
import { showControls } from "../../base/log.ts";
import { isTerminal, standardError, standardOutput } from "../../base/output.ts";
import { isRunning, SYSTEM, type System } from "../../base/system.ts";
import type { Scheduler } from "../../engine/schedule/schedule.ts";
import type { ProjectFolder } from "../../operator/sync/local-sync.ts";
import type { Environment } from "../../platform/account/environment.ts";
import type { Sealer } from "../../platform/secret/seal.ts";
import type { Store } from "../../store/port.ts";
import type { Docs } from "../docs/docs.ts";
import { findCommit } from "./sync/git-commit.ts";
import { findPager, isLong, runPager } from "./terminal/pager.ts";
import { keepPaint, readScreen, type Screen } from "./terminal/screen.ts";
import { cutTo } from "./terminal/table.ts";

/** A started service, as the commands need it. Disposing it stops it gracefully. */
export interface RunningService extends AsyncDisposable {
  /** The address where the service listens, without a trailing slash. */
  readonly url: string;
  /** The public origin, with which receiver URLs begin. */
  readonly baseUrl: string;
  readonly port: number;
  readonly store: Store;
  readonly sealer: Sealer;
  readonly scheduler: Pick<Scheduler, "recordDue">;
  /** Writes later changes over HTTP to the files of this folder. Null ends that. */
  useFolder(folder: ProjectFolder | null): void;
  /** Runs the cases of relays without effect. Returns a sentence for each relay that has cases with another result than before. */
  findChangedCases(
    environment: Environment,
    relayNames: readonly string[],
  ): Promise<{ relay: string; message: string }[]>;
  /** Reports this node as not ready and waits a moment, so load balancers send it no more requests. It does nothing on a single node. */
  leave(): Promise<void>;
  /** Makes a one-time link into the dashboard (local) or to the first setup (server). Returns null once an owner exists. */
  makeSigninLink(): Promise<string | null>;
}

/**
 * Starts a service. `stopped` ends a start that waits for its disk or its database, and the start then rejects. `program` is the word that
 * begins commands in its messages.
 */
type StartService = (
  config: ServiceConfig,
  ports: { stopped: Promise<unknown>; program: string; printRun?: (line: string) => void },
) => Promise<RunningService>;

export interface Io {
  clock: Clock;
  /** The operating system. */
  system: System;
  env: Readonly<Record<string, string | undefined>>;
  cwd: string;
  /** The names of the machine and of its signed-in user, if known. */
  machine: { name: string; account: string };
  /** True if a person uses the terminal: standard input and standard output are terminals. */
  interactive: boolean;
  /** The abilities of standard output. */
  screen: Screen;
  /** Writes data: one or more lines on standard output. */
  print(text: string): void;
  /** Writes text as `print` does, with the colors and styles for the screen. */
  draw(text: string): void;
  /** Shows text through a pager. Resolves to false if there is none. */
  page(text: string): Promise<boolean>;
  /** Draws a line on standard error that the next one replaces. Null removes it. Use it only if `watched` is true. */
  redraw(text: string | null): void;
  /** Writes messages: one or more lines on standard error. */
  inform(text: string): void;
  /** Reads all of standard input as text. */
  readInput(): Promise<string>;
  /** Reads all of standard input as bytes. */
  readInputBytes(): Promise<Uint8Array>;
  /** Asks the user a question. `y` means yes, and any other answer means no. */
  confirm(question: string): Promise<boolean>;
  /** Asks as `confirm` does, even if standard input is a file. Resolves to null if there is no terminal. */
  confirmAside(question: string): Promise<boolean | null>;
  /** Asks for a secret without showing it. Resolves to null if standard input is no terminal, or without an answer. */
  askSecret(question: string): Promise<string | null>;
  /** True if standard error is a terminal, so the user sees messages at once. */
  watched: boolean;
  /** The time to wait for a server, if it is shorter than usual. */
  patienceMs?: number;
  /** Reads standard input, line by line. */
  inputLines(): AsyncIterable<string>;
  /** Resolves on a signal that asks to stop. A second signal ends the process at once. `over` ends the wait. */
  untilStopped(over?: AbortSignal): Promise<void>;
  /** Gives the process this much time to end by itself. After that it prints the reason and exits with 1. The returned function removes the limit. */
  endWithin(ms: number, why: string): () => void;
  /** Finds the git commit of a folder. `-dirty` follows it if the folder has changes that are in no commit. Null: there is none. */
  findCommit(folder: string): Promise<string | null>;
  /**
   * Opens a link in the user's browser. A one-time link is opened through a page in this folder of the user, and null means that the link is
   * no secret. Resolves to true if a program opened it.
   */
  openBrowser(link: string, folder: string | null): Promise<boolean>;
  startService: StartService;
  /** Reads the documentation. */
  readManual(): Promise<Docs>;
}

/** Returns the word or words that start this command line, for commands in messages. The launcher that started it knows them. */
export function programWord({ env }: Io): string {
  return env.RELAY_PROGRAM || "relay";
}

/** The time in which two signals count as one. Ctrl+C may arrive twice, once from the terminal and once through a package runner. */
const SAME_SIGNAL_MS = 200;

/** The time between checks that the launcher still runs. */
const LOOK_EVERY_MS = 500;

/** The umask that gives only this user access to files and folders, because most contain people's data or secrets. */
const OWNER_ONLY = 0o077;

/** Wraps the process's streams, variables and signals. The caller passes the rest in `parts`. */
export function processIo(parts: Pick<Io, "startService" | "readManual">): Io {
  if (SYSTEM.hasModes) process.umask(OWNER_ONLY);
  let stays = false;
  process.on("exit", (code) => {
    // A command that lost data lines has failed. A server continues without its lines.
    if (code === 0 && !stays && standardOutput.dropped > 0) process.exitCode = 1;
  });
  let screen: Screen | null = null;
  const line = new RedrawnLine();
  const io: Io = {
    ...parts,
    clock: systemClock,
    system: SYSTEM,
    env: process.env,
    cwd: process.cwd(),
    get machine() {
      return readMachine();
    },
    get interactive() {
      return isTerminal(1) && isTerminal(0);
    },
    get screen() {
      screen ??= readScreen(isTerminal(1) ? process.stdout : {}, process.env);
      return screen;
    },
    print: (text) => standardOutput.write(line.before(showControls(text))),
    draw: (text) => standardOutput.write(line.before(keepPaint(text))),
    page: (text) => pageText(text, io.screen),
    redraw: (text) => line.draw(text),
    inform: (text) => standardError.write(line.before(showControls(text))),
    readInput: () => Bun.stdin.text(),
    readInputBytes: () => Bun.stdin.bytes(),
    confirm,
    confirmAside,
    askSecret,
    get watched() {
      return isTerminal(2) && process.env.TERM !== "dumb";
    },
    inputLines: readInputLines,
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
    findCommit,
    openBrowser,
  };
  return io;
}

async function* readInputLines(): AsyncGenerator<string> {
  const { createInterface } = await import("node:readline");
  yield* createInterface({ input: process.stdin, crlfDelay: Number.POSITIVE_INFINITY });
}

async function pageText(text: string, { columns, rows, clever }: Screen): Promise<boolean> {
  if (columns === null || rows === null || !clever || !isLong(text, columns, rows)) return false;
  const command = findPager(process.env);
  return command !== null && (await runPager(command, keepPaint(text), process.env));
}

const CLEAR_LINE = "\r\u001b[K";

/** A line of standard error that the next one replaces. Any other output clears it first. */
class RedrawnLine {
  #drawn = false;

  draw(text: string | null): void {
    if (text === null && !this.#drawn) return;
    this.#drawn = text !== null;
    const room = (process.stderr.columns || 80) - 1;
    try {
      writeSync(process.stderr.fd, CLEAR_LINE + (text === null ? "" : cutTo(showControls(text), room)));
    } catch {
      // Standard error is closed, so no user sees the line.
    }
  }

  before(text: string): string {
    this.draw(null);
    return text;
  }
}

function readMachine(): Io["machine"] {
  try {
    return { name: hostname(), account: userInfo().username };
  } catch {
    // A container's user may have a number and no name.
    return { name: hostname(), account: "" };
  }
}

async function confirm(question: string): Promise<boolean> {
  const { createInterface } = await import("node:readline");
  const reader = createInterface({ input: process.stdin, output: process.stderr });
  return await new Promise((resolve) => {
    reader.once("close", () => resolve(false));
    reader.question(`${showControls(question)} [y/N] `, (answer) => {
      resolve(/^y(es)?$/i.test(answer.trim()));
      reader.close();
    });
  });
}

/**
 * Asks at the process's own terminal if standard input is a file. It reads the answer with one call, because a stream would keep the
 * process running afterwards.
 */
async function confirmAside(question: string): Promise<boolean | null> {
  if (!isTerminal(2)) return null;
  if (isTerminal(0)) return await confirm(question);
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

/** Reads one line of the terminal in raw mode, which shows nothing. */
async function askSecret(question: string): Promise<string | null> {
  const { stdin } = process;
  if (stdin.isTTY !== true) return null;
  writeSync(process.stderr.fd, `${showControls(question)}: `);
  stdin.setRawMode(true);
  try {
    return await readRawLine(stdin);
  } finally {
    stdin.setRawMode(false);
    stdin.pause();
    writeSync(process.stderr.fd, "\n");
  }
}

/** Resolves to null for an empty line, and after Ctrl+C or Ctrl+D. */
function readRawLine(stdin: NodeJS.ReadStream): Promise<string | null> {
  return new Promise((resolve) => {
    let line = "";
    const finish = (answer: string | null): void => {
      stdin.off("data", onData);
      resolve(answer);
    };
    const onData = (data: Buffer): void => {
      for (const char of data.toString("utf8")) {
        if (char === "\r" || char === "\n") finish(line === "" ? null : line);
        if (char === "\u0003" || char === "\u0004") finish(null);
        line = char === "\u007f" || char === "\b" ? line.slice(0, -1) : line + char;
      }
    };
    stdin.on("data", onData);
    stdin.resume();
  });
}

const MAX_ANSWER_BYTES = 256;

function openTerminal(): number | null {
  try {
    return openSync(SYSTEM.terminal, "r");
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
    for (const signal of SYSTEM.stopSignals) process.on(signal, onSignal);
    const stopLooking = watchLauncher(onSignal);
    over?.addEventListener("abort", () => {
      for (const signal of SYSTEM.stopSignals) process.off(signal, onSignal);
      stopLooking();
      resolve();
    });
  });
}

/**
 * Watches the launcher of the package scripts. The launcher may be killed without a signal to its child, so the process then stops as after
 * a signal.
 */
function watchLauncher(stop: () => void): () => void {
  const parent = Number(process.env.RELAY_PARENT_PID || Number.NaN);
  if (Number.isNaN(parent)) return () => undefined;
  const look = (): void => {
    if (process.ppid === parent && isRunning(parent)) cancel = afterUnlessEnded(LOOK_EVERY_MS, look);
    else stop();
  };
  let cancel = afterUnlessEnded(LOOK_EVERY_MS, look);
  return () => cancel();
}

/**
 * Opens a page of this user that redirects to a one-time link. The link itself must not be an argument, because every user of this
 * machine can read the arguments of processes.
 */
async function openBrowser(link: string, folder: string | null): Promise<boolean> {
  if (SYSTEM.browserCommand(link, process.env) === null) return false;
  const url = folder === null ? link : Bun.pathToFileURL(writeLeadingPage(link, folder)).href;
  const command = SYSTEM.browserCommand(url, process.env) ?? [];
  try {
    const child = Bun.spawn(command, { stdin: "ignore", stdout: "ignore", stderr: "ignore" });
    child.unref();
    return true;
  } catch {
    return false;
  }
}

/** Writes the redirecting page next to the data, readable by its user only. The link in it works only once. */
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
