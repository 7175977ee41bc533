/**
 * What standard output can show, and words painted for it. A colour says what the dashboard's says: red is trouble and nothing else. What others
 * wrote is made plain before it is painted, so that the escapes that reach a terminal are the few of this file.
 */
import { showControls } from "../../../base/log.ts";

export interface Screen {
  /** Its width; null: it is no terminal, so nothing is cut, and times and ids are whole. */
  columns: number | null;
  rows: number | null;
  colour: boolean;
  /** Whether it takes more than one line after another: a pager, a line that is drawn again. */
  clever: boolean;
}

/** Everything stands as it is. */
export const PIPE: Screen = { columns: null, rows: null, colour: false, clever: false };

type Env = Readonly<Record<string, string | undefined>>;

const USUAL_COLUMNS = 80;
/** Narrower is a terminal that does not know its width. */
const LEAST_COLUMNS = 20;

/** NO_COLOR wins over FORCE_COLOR and CLICOLOR_FORCE, and both over what the terminal is. */
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

/** The text in this tone, where colours are shown. It is made plain by whoever calls. */
export function paint(text: string, tone: Tone | null, { colour }: Screen): string {
  return !colour || tone === null || text === "" ? text : `\u001b[${CODES[tone]}m${text}\u001b[0m`;
}

const OWN = new RegExp(`(\u001b\\[(?:0|${Object.values(CODES).join("|")})m)`);

/** What was painted here goes to the terminal as it is, and no other control character does. */
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

/** What a word of a state means; null: nothing that has a colour. */
export function toneOf(word: string): Tone | null {
  return TONE_OF.get(word) ?? null;
}
