/**
 * Chooses the browser for the browser tests: CHROMIUM's, then an installed one, then the one in the npm package. All processes share the npm
 * package's browser, which is unpacked once. A browser counts only if it starts here. Otherwise the result says why each candidate failed.
 */
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { brotliDecompressSync } from "node:zlib";
import { chromium } from "playwright-core";
import { PATIENCE_MS } from "./patience.ts";

interface BrowserProgram {
  path: string;
  /** Variables that the browser needs in addition to this process's own. */
  env: Record<string, string>;
}

type FoundBrowser = { ok: true; browser: BrowserProgram } | { ok: false; why: string };

export const BROWSER_ARGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

/** Passes the browser to child processes, so they do not search for it. */
export const BROWSER_VARIABLE = "TEST_BROWSER";
/** Value of CHROMIUM that asks for no browser. */
const NONE = "none";
const CARRIED = join(import.meta.dir, "..", "..", "node_modules", "@sparticuz", "chromium");

/** Returns the browser that the parent process passed, or the first one that starts. */
export async function findBrowser(): Promise<FoundBrowser> {
  const handed = process.env[BROWSER_VARIABLE];
  if (handed !== undefined) return { ok: true, browser: JSON.parse(handed) as BrowserProgram };
  const named = process.env.CHROMIUM;
  if (named === NONE) return { ok: false, why: "CHROMIUM=none asks for none" };
  const tried: string[] = [];
  for (const path of [...(named ? [named] : []), ...listUsual()]) {
    if (!existsSync(path)) {
      if (path === named) tried.push(`CHROMIUM names ${path}, which is not there`);
      continue;
    }
    const trouble = await tryStart({ path, env: {} });
    if (trouble === null) return { ok: true, browser: { path, env: {} } };
    tried.push(`${path} does not start (${trouble})`);
  }
  if (tried.length === 0) tried.push("no Chrome, Chromium or Edge in its usual places");
  const carried = await findCarried();
  if (carried.ok) return carried;
  return { ok: false, why: [...tried, carried.why].join("; ") };
}

function listUsual(): string[] {
  const { env, platform } = process;
  if (platform === "win32") {
    const programs = [env.ProgramFiles, env["ProgramFiles(x86)"], env.LOCALAPPDATA].filter((folder) => folder !== undefined);
    const files = ["Google/Chrome/Application/chrome.exe", "Chromium/Application/chrome.exe"];
    return [...files, "Microsoft/Edge/Application/msedge.exe"].flatMap((file) => programs.map((folder) => join(folder, file)));
  }
  if (platform === "darwin") {
    return ["Google Chrome", "Chromium", "Microsoft Edge"].flatMap((name) =>
      ["/", homedir()].map((top) => join(top, "Applications", `${name}.app`, "Contents", "MacOS", name)),
    );
  }
  const names = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
  const found = [...names, "microsoft-edge", "microsoft-edge-stable"].flatMap((name) =>
    [Bun.which(name), `/usr/bin/${name}`, `/snap/bin/${name}`].filter((path) => path !== null),
  );
  return [...new Set([...found, "/opt/google/chrome/chrome", "/opt/microsoft/msedge/msedge"])];
}

/** Finds the npm package's browser. It includes the libraries and the fonts that a bare system lacks. */
async function findCarried(): Promise<FoundBrowser> {
  if (process.platform !== "linux" || process.arch !== "x64") return { ok: false, why: "the one from npm is for Linux on x64 alone" };
  if (!existsSync(CARRIED)) return { ok: false, why: "the one from npm is not installed" };
  const tried: string[] = [];
  try {
    const folder = await unpackCarried();
    const path = join(folder, "chromium");
    const font = existsSync("/etc/fonts/fonts.conf") ? {} : { FONTCONFIG_FILE: join(folder, "fonts.conf") };
    const libraries = [join(folder, "al2023", "lib"), process.env.LD_LIBRARY_PATH].filter(Boolean).join(":");
    for (const env of [font, { ...font, LD_LIBRARY_PATH: libraries }]) {
      const trouble = await tryStart({ path, env });
      if (trouble === null) return { ok: true, browser: { path, env } };
      tried.push(trouble);
    }
  } catch (error) {
    tried.push(error instanceof Error ? error.message : String(error));
  }
  return { ok: false, why: `the one from npm does not start (${tried.join("; ")})` };
}

/** Unpacks into a draft folder and then renames it in one step. If two processes do so at once, the second one uses the first one's folder. */
async function unpackCarried(): Promise<string> {
  const { version } = JSON.parse(readFileSync(join(CARRIED, "package.json"), "utf8")) as { version: string };
  const cache = join(import.meta.dir, "..", "..", "node_modules", ".cache");
  const folder = join(cache, `chromium-${version}`);
  if (existsSync(folder)) return folder;
  mkdirSync(cache, { recursive: true });
  const draft = mkdtempSync(join(cache, ".chromium-"));
  try {
    const unpack = (name: string) => brotliDecompressSync(readFileSync(join(CARRIED, "bin", `${name}.br`)));
    writeFileSync(join(draft, "chromium"), unpack("chromium"), { mode: 0o755 });
    for (const name of ["al2023", "fonts"]) {
      await new Bun.Archive(unpack(`${name}.tar`)).extract(join(draft, name));
    }
    const [fonts, kept] = [join(folder, "fonts"), join(folder, "font-cache")];
    writeFileSync(join(draft, "fonts.conf"), `<?xml version="1.0"?>\n<fontconfig><dir>${fonts}</dir><cachedir>${kept}</cachedir></fontconfig>\n`);
    renameSync(draft, folder);
  } catch (error) {
    if (!existsSync(folder)) throw error;
  } finally {
    rmSync(draft, { recursive: true, force: true });
  }
  return folder;
}

/** Returns null if the browser starts, otherwise the reason in one line. */
async function tryStart({ path, env }: BrowserProgram): Promise<string | null> {
  try {
    const browser = await chromium.launch({
      executablePath: path,
      headless: true,
      args: BROWSER_ARGS,
      timeout: PATIENCE_MS,
      env: { ...process.env, ...env } as Record<string, string>,
    });
    await browser.close();
    return null;
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error);
    const telling = /error while loading shared libraries[^\n]*|[^\n]*(?:No such file|not found)[^\n]*/.exec(text);
    return (telling?.[0] ?? text.split("\n")[0] ?? "").trim().slice(0, 200);
  }
}
