/**
 * Compares this program with the newest release (`relay upgrade --check`). It asks the network only when the user runs it, changes nothing, and
 * never replaces the program.
 */
import { existsSync, realpathSync } from "node:fs";
import { homedir } from "node:os";
import { writeJson } from "../../../base/json.ts";
import { LATEST_FILE, type LatestRelease, readLatest } from "../../../base/latest-release.ts";
import { ownCommand } from "../../../base/own-executable.ts";
import { BUILT_AT, RELEASES_URL } from "../../../base/release/build.ts";
import { isNewer } from "../../../base/release/feed.ts";
import { VERSION } from "../../../base/release/version.ts";
import { SYSTEM } from "../../../base/system.ts";
import { fetchDocument } from "../../../platform/outbound/document.ts";
import { OperatorRequestFailed } from "../../../platform/outbound/operator-client.ts";
import { type Command, CommandFailure, type Input, type Option, UsageError } from "../command.ts";
import { JSON_OUTPUT } from "../data-directory.ts";
import { type Io, programWord } from "../io.ts";
import { ALLOW_PRIVATE } from "../service-option.ts";
import { findChannel } from "./channel.ts";

/** A feed has less than a kilobyte. */
const MAX_FEED_BYTES = 65_536;
const TIMEOUT_MS = 10_000;
/** A proxy would connect to addresses that the command cannot check. */
const PROXY_VARIABLES = ["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"];
/** The exit code of commands that compare, if something differs. */
const DIFFERS = 3;

const FROM: Option = {
  name: "from",
  value: "<url>",
  env: "RELAY_DOWNLOAD_URL",
  otherwise: RELEASES_URL ?? "none",
  help: "the address of the releases, or of a mirror",
};

export const upgrade: Command = {
  words: ["upgrade"],
  summary: "compare this program with the newest release",
  details:
    "The command asks the release feed, latest/download/latest.json below --from, and only when you run it. It prints the newest version and how to upgrade, and changes nothing. The exit code is 0 if this is the newest version, 3 if there is a newer one, and 1 if the feed cannot be read. It connects only to https addresses, and to private ones that --allow-private names.",
  options: [
    { name: "check", help: "ask for the newest release" },
    FROM,
    { ...ALLOW_PRIVATE, help: "private hosts or ranges of a mirror; a host given by name may be http" },
    JSON_OUTPUT,
  ],
  examples: ["relay upgrade --check", "relay upgrade --check --json"],
  async run(input, io) {
    if (!input.on("check"))
      throw new UsageError(
        "Relay does not replace itself: relay upgrade --check asks for the newest release, and says how to upgrade.",
      );
    const releases = readReleasesUrl(input);
    const latest = await readFeed(releases, input, io);
    const isOld = isNewer(latest.version, VERSION);
    const channel = findChannel({
      executable: realpathSync(process.execPath),
      isCompiled: ownCommand().length === 1,
      program: programWord(io),
      cpu: process.arch,
      home: homedir(),
      isPod: io.env.KUBERNETES_SERVICE_HOST !== undefined,
      exists: existsSync,
      quote: SYSTEM.quote,
      releases,
      isMirror: releases !== RELEASES_URL,
    });
    if (input.on("json")) {
      const running = { version: VERSION, builtAt: BUILT_AT };
      io.print(writeJson({ running, latest, isNewest: !isOld, ...(isOld ? { upgrade: channel } : {}) }, 2));
      return isOld ? DIFFERS : 0;
    }
    io.print(`Running  ${VERSION}${BUILT_AT === null ? "" : `, built ${dayOf(BUILT_AT)}`}`);
    io.print(`Newest   ${latest.version}, released ${dayOf(latest.releasedAt)}`);
    if (!isOld) {
      io.inform(
        isNewer(VERSION, latest.version)
          ? "This program is newer than the newest release."
          : "This is the newest release.",
      );
      return 0;
    }
    for (const [at, line] of channel.upgrade.entries())
      io.print(`${at === 0 ? "Upgrade  " : "         "}${line}`);
    io.inform(
      `Installed with ${channel.name}. Read relay changes of the new version first; relay docs upgrade shows how to go back.`,
    );
    return DIFFERS;
  },
};

/** Returns the day of an ISO time. */
const dayOf = (time: string): string => time.slice(0, 10);

function readReleasesUrl(input: Input): string {
  const text = input.text(FROM.name) ?? RELEASES_URL;
  if (text === null)
    throw new UsageError(
      "This build names no address of releases: name it with --from or RELAY_DOWNLOAD_URL, such as https://github.com/<owner>/<name>/releases.",
    );
  const url = URL.parse(text);
  const isPlain =
    url !== null && /^https?:$/.test(url.protocol) && url.username === "" && url.password === "";
  // The address becomes a part of a command to copy.
  if (isPlain && /^[\w:/.~%[\]-]+$/.test(text)) return text.replace(/\/+$/, "");
  throw new UsageError(
    `--from is ${JSON.stringify(text)}: write an https address, such as https://github.com/<owner>/<name>/releases.`,
  );
}

async function readFeed(releases: string, input: Input, io: Io): Promise<LatestRelease> {
  const url = new URL(`${releases}/latest/download/${LATEST_FILE}`);
  const allowPrivate = input.list(ALLOW_PRIVATE.name);
  const { clock } = io;
  try {
    const text = await fetchDocument(url, {
      clock,
      allowPrivate,
      maxBytes: MAX_FEED_BYTES,
      timeoutMs: TIMEOUT_MS,
    });
    const latest = readLatest(text);
    if (latest !== null) return latest;
    throw new OperatorRequestFailed(
      `${url.href} is not a release feed: check the address of the releases (--from).`,
    );
  } catch (error) {
    if (!(error instanceof OperatorRequestFailed)) throw error;
    const proxy = PROXY_VARIABLES.find((name) => io.env[name]);
    const todo =
      proxy === undefined
        ? ""
        : ` This command does not use the proxy of ${proxy}: open ${releases}/latest in a browser, or name a mirror with --from.`;
    throw new CommandFailure("feed_unusable", `The release feed could not be read. ${error.message}${todo}`);
  }
}
