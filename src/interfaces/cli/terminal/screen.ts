/**
 * Reads the abilities of standard output, and paints words for it. Colors have the same meaning as in the dashboard: red means trouble
 * only. Foreign text loses its control characters before it is painted, so only this file's escapes reach a terminal.
 */
import { showControls } from "../../../base/log.ts";

export interface Screen {
  /** The width, or null if there is no terminal. Null also means that nothing is cut, and times and ids stay whole. */
  columns: number | null;
  rows: number | null;
  colour: boolean;
  /** True if it can do more than append lines: run a pager, or redraw a line. */
  clever: boolean;
}

/** The screen of a pipe, where all text stays unchanged. */
export const PIPE: Screen = { columns: null, rows: null, colour: false, clever: false };

type Env = Readonly<Record<string, string | undefined>>;

const USUAL_COLUMNS = 80;
/** The least width. A terminal that reports less does not know its width. */
const LEAST_COLUMNS = 20;

/** Reads the screen. NO_COLOR takes precedence over FORCE_COLOR and CLICOLOR_FORCE, and all of them over the terminal's abilities. */
export function readScreen(
  stream: { isTTY?: boolean | undefined; columns?: number | undefined; rows?: number | undefined },
  env: Env,
): Screen {
  const isTerminal = stream.isTTY === true;
  const clever = isTerminal && env.TERM !== "dumb";
  const known = stream.columns || Number(env.COLUMNS) || USUAL_COLUMNS;
  return {
    columns: isTerminal ? Math.max(LEAST_COLUMNS, known) : null,
    rows: isTerminal ? stream.rows || null : null,
    colour: hasColour(env, clever && env.CLICOLOR !== "0"),
    clever,
  };
}

function hasColour(env: Env, otherwise: boolean): boolean {
  if (env.NO_COLOR || isOff(env.FORCE_COLOR)) return false;
  const forced = [env.FORCE_COLOR, env.CLICOLOR_FORCE].some((text) => text && !isOff(text));
  return forced || otherwise;
}

function isOff(text: string | undefined): boolean {
  return text === "0" || text === "false";
}

const CODES = {
  good: "32",
  going: "36",
  wait: "33",
  bad: "31",
  worst: "1;31",
  quiet: "2",
  strong: "1",
} as const;
export type Tone = keyof typeof CODES;

/** Paints the text in this tone if colors are on. The caller removes control characters from the text. */
export function paint(text: string, tone: Tone | null, { colour }: Screen): string {
  return !colour || tone === null || text === "" ? text : `\u001b[${CODES[tone]}m${text}\u001b[0m`;
}

const OWN = new RegExp(`(\u001b\\[(?:0|${Object.values(CODES).join("|")})m)`);

/** Escapes every control character except the paint of this file. */
export function keepPaint(text: string): string {
  return text
    .split(OWN)
    .map((part, at) => (at % 2 === 1 ? part : showControls(part)))
    .join("");
}

const TONES: Readonly<Record<Tone, readonly string[]>> = {
  good: ["done", "ok", "active", "live", "works", "sent", "verified", "granted"],
  going: ["running"],
  wait: [
    "queued",
    "waiting",
    "paused",
    "on hold",
    "warn",
    "unknown",
    "intended",
    "interrupted",
    "suspended",
    "not verified",
  ],
  bad: ["failed", "refused", "fail", "refusing", "failing", "open"],
  worst: ["dead"],
  quiet: [
    "ignored",
    "duplicate",
    "skipped",
    "revoked",
    "ended",
    "expunged",
    "mailbox",
    "resolved",
    "new",
    "no",
  ],
  strong: [],
};
const TONE_OF = new Map(
  (Object.keys(TONES) as Tone[]).flatMap((tone) => TONES[tone].map((word): [string, Tone] => [word, tone])),
);

/** Returns the tone of a state's word, or null if the word has no color. */
export function toneOf(word: string): Tone | null {
  return TONE_OF.get(word) ?? null;
}
