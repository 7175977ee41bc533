/**
 * The differences between operating systems, one row a sentence, with the description of each system on this one. Only Linux is run here: the rows of
 * the others say what the service asks of them, not what they do.
 */
import { afterAll, describe, expect, test } from "bun:test";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { syncFolder } from "../../src/base/durable-file.ts";
import { hidePasswords } from "../../src/base/process-list.ts";
import { isOpenToOthers, isRunning, SYSTEM, SYSTEMS, type System } from "../../src/base/system.ts";
import { profilePath, readProfiles } from "../../src/interfaces/cli/api/profile.ts";
import type { Io } from "../../src/interfaces/cli/io.ts";
import { explainDirectory } from "../../src/interfaces/cli/server/start-refusal.ts";
import { runCommand } from "../kit/cli-io.ts";

const root = mkdtempSync(join(tmpdir(), "relay-system-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));

const URL = "http://127.0.0.1:4747/#token";
type Name = keyof typeof SYSTEMS;
type Row = readonly [sentence: string, ask: (system: System) => unknown, answers: Readonly<Record<Name, unknown>>];

const ROWS: readonly Row[] = [
  [
    "settings are in the folder that the system has for them",
    ({ settingsFolder }) => settingsFolder({ HOME: "/u", APPDATA: "C:\\u\\AppData\\Roaming" }),
    { linux: "/u/.config", macos: "/u/Library/Application Support", windows: "C:\\u\\AppData\\Roaming" },
  ],
  [
    "XDG_CONFIG_HOME takes precedence",
    ({ settingsFolder }) => settingsFolder({ HOME: "/u", APPDATA: "C:\\u", XDG_CONFIG_HOME: "/cfg" }),
    { linux: "/cfg", macos: "/cfg", windows: "/cfg" },
  ],
  ["a user without a home has no settings", ({ settingsFolder }) => settingsFolder({}), { linux: null, macos: null, windows: null }],
  [
    "a browser opens by the system's own program",
    ({ browserCommand }) => browserCommand(URL, { DISPLAY: ":0" }),
    { linux: ["xdg-open", URL], macos: ["open", URL], windows: ["rundll32", "url.dll,FileProtocolHandler", URL] },
  ],
  ["a Linux without a display opens none", ({ browserCommand }) => browserCommand(URL, {}) !== null, { linux: false, macos: true, windows: true }],
  [
    "a Linux with Wayland opens one",
    ({ browserCommand }) => browserCommand(URL, { WAYLAND_DISPLAY: "wayland-0" }) !== null,
    { linux: true, macos: true, windows: true },
  ],
  [
    "a stop is asked for by signals, or by the console",
    ({ stopSignals }) => stopSignals,
    { linux: ["SIGINT", "SIGTERM"], macos: ["SIGINT", "SIGTERM"], windows: ["SIGINT", "SIGBREAK", "SIGHUP"] },
  ],
  [
    "a question is asked at the process's own terminal",
    ({ terminal }) => terminal,
    { linux: "/dev/tty", macos: "/dev/tty", windows: "\\\\.\\CONIN$" },
  ],
  ["a plain path needs no quotes", ({ quote }) => quote("data/relay-1"), { linux: "data/relay-1", macos: "data/relay-1", windows: "data/relay-1" }],
  [
    "a path with a space is one word",
    ({ quote }) => quote("my data/relay"),
    { linux: "'my data/relay'", macos: "'my data/relay'", windows: '"my data/relay"' },
  ],
  ["a quote in a path does not end the word", ({ quote }) => quote("it's"), { linux: "'it'\\''s'", macos: "'it'\\''s'", windows: '"it\'s"' }],
  [
    "a backslash separates folders on Windows only",
    ({ quote }) => quote("C:\\relay"),
    { linux: "'C:\\relay'", macos: "'C:\\relay'", windows: "C:\\relay" },
  ],
  ["a variable in a path is not replaced by a Unix shell", ({ quote }) => quote("$HOME"), { linux: "'$HOME'", macos: "'$HOME'", windows: '"$HOME"' }],
  ["files have modes", ({ hasModes }) => hasModes, { linux: true, macos: true, windows: false }],
  ["the file that discards output", ({ nullDevice }) => nullDevice, { linux: "/dev/null", macos: "/dev/null", windows: null }],
  ["a folder is flushed", ({ flushesFolders }) => flushesFolders, { linux: true, macos: true, windows: false }],
  ["an open file can be replaced", ({ replacesOpenFiles }) => replacesOpenFiles, { linux: true, macos: true, windows: false }],
  ["arguments can be hidden", ({ processFolder }) => processFolder, { linux: "/proc/self", macos: null, windows: null }],
];

describe.each(Object.keys(SYSTEMS) as Name[])("on %s", (name) => {
  test.each(ROWS)("%s", (_sentence, ask, answers) => {
    expect(ask(SYSTEMS[name])).toEqual(answers[name]);
  });

  test("a file that others may read is found where modes exist", () => {
    const file = join(root, `open-${name}`);
    writeFileSync(file, "");
    chmodSync(file, 0o644);
    expect(isOpenToOthers(file, SYSTEMS[name])).toBe(SYSTEMS[name].hasModes);
    chmodSync(file, 0o600);
    expect(isOpenToOthers(file, SYSTEMS[name])).toBe(false);
    expect(isOpenToOthers(join(root, "missing"), SYSTEMS[name])).toBe(false);
  });

  test("profiles that others may read are made private where modes exist, and read everywhere", () => {
    const told: string[] = [];
    const env = { XDG_CONFIG_HOME: join(root, `cfg-${name}`) };
    const io = { env, system: SYSTEMS[name], inform: (text: string) => told.push(text) } as unknown as Io;
    const file = profilePath(io) ?? "";
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
    writeFileSync(file, JSON.stringify({ default: null, profiles: {} }));
    chmodSync(file, 0o644);
    expect(readProfiles(io).profiles).toEqual([]);
    expect([statSync(file).mode & 0o777, told.length]).toEqual(SYSTEMS[name].hasModes ? [0o600, 1] : [0o644, 0]);
  });

  test("a refused directory is explained by its owner where modes exist", () => {
    const folder = join(root, `refused-${name}`);
    mkdirSync(join(folder, "relay.db"), { recursive: true });
    const io = { env: {}, system: SYSTEMS[name], machine: { name: "", account: "ann" } } as unknown as Io;
    const said = explainDirectory(Object.assign(new Error("no"), { code: "EISDIR" }), folder, io);
    expect(said?.message.includes("relay.db is a folder") ?? false).toBe(SYSTEMS[name].hasModes);
  });

  test("relay config shows where its profiles are", async () => {
    const env = { HOME: "/u", APPDATA: "/roaming" };
    const { said } = await runCommand(["config"], { cwd: root, env, system: SYSTEMS[name] });
    expect(said).toContain(join(SYSTEMS[name].settingsFolder(env) ?? "", "relay", "profiles.json"));
  });

  test("passwords are hidden, and a missing folder is flushed, only where the system can", () => {
    const { processFolder, flushesFolders } = SYSTEMS[name];
    expect(() => hidePasswords({ processFolder: processFolder === null ? null : join(root, "no-process") })).not.toThrow();
    const flush = (): void => syncFolder(join(root, "missing"), { flushesFolders });
    if (flushesFolders) expect(flush).toThrow("ENOENT");
    else expect(flush).not.toThrow();
  });
});

test("this process runs on one of these systems, and is running", () => {
  expect(Object.values(SYSTEMS)).toContain(SYSTEM as (typeof SYSTEMS)[Name]);
  expect(isRunning(process.pid)).toBe(true);
});
