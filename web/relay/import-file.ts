/** Import of an exported file: splits it into batches, one request each, and counts the outcomes of its lines. */
import type { ImportLineView, ImportView } from "../../src/engine/receiver/import.ts";
import { call, writeQuery } from "../base/api.ts";
import { type ExportForm, readList } from "./import-list.ts";

/** Size limit, because the browser holds the whole file in memory. */
export const MAX_FILE_MB = 64;
/** Largest batch of one request. */
const BATCH_BYTES = 900 * 1024;
const BATCH_LINES = 1_000;
const SHOWN_LINES = 6;
const LF = 0x0a;

export interface MissedFile {
  name: string;
  bytes: Uint8Array<ArrayBuffer>;
  /** SHA-256 in hex; null if the browser cannot compute it, as on an address without https. */
  hash: string | null;
  /** True if it is a list of which the provider says that another page follows. */
  hasMore: boolean;
}

/** Reads a file. A provider's list becomes lines of one event each. */
export async function readFile(file: File, forms: readonly ExportForm[]): Promise<MissedFile> {
  const bytes = new Uint8Array(await file.arrayBuffer());
  const list = readList(new TextDecoder().decode(bytes), forms);
  const digest = globalThis.isSecureContext ? await crypto.subtle.digest("SHA-256", bytes) : null;
  const hash =
    digest === null
      ? null
      : [...new Uint8Array(digest)].map((one) => one.toString(16).padStart(2, "0")).join("");
  if (list === null) return { name: file.name, bytes, hash, hasMore: false };
  return { name: file.name, bytes: new TextEncoder().encode(list.text), hash, hasMore: list.hasMore };
}

/** Lines that were not imported for the same reason. */
export interface MissedCause {
  outcome: "ignored" | "refused";
  message: string;
  lines: number[];
  count: number;
}

export interface MissedTally {
  counts: Counts;
  /** Number of new lines with a verified signature. */
  verified: number;
  causes: Map<string, MissedCause>;
  version: number | null;
  /** The followers that evaluated the lines, with their versions. */
  followers: string | null;
  lines: number;
  /** Number of lines of each relay that could read them. It is empty if no relay follows the receiver. */
  relays: Map<string, Counts>;
}

type Counts = Record<ImportLineView["outcome"], number>;
const noneOf = (): Counts => ({ new: 0, known: 0, ignored: 0, refused: 0 });

/** Returns the number of new events, of all relays. */
export function countNew({ counts, relays }: MissedTally): number {
  return relays.size === 0 ? counts.new : [...relays.values()].reduce((sum, one) => sum + one.new, 0);
}

/** Plans or stores every batch, one after another. Calls `onStep` after each with the progress from 0 to 1. */
export async function passOver(
  path: string,
  { bytes, hash }: MissedFile,
  { dryRun, version, followers }: { dryRun: boolean; version: number | null; followers: string | null },
  onStep: (done: number, tally: MissedTally) => void,
): Promise<MissedTally> {
  const tally: MissedTally = {
    counts: noneOf(),
    verified: 0,
    causes: new Map(),
    version: null,
    followers: null,
    lines: 0,
    relays: new Map(),
  };
  const known = new Set<string>();
  for (const { start, end, line, lines } of batchesOf(bytes)) {
    if (end - start > BATCH_BYTES) {
      tally.counts.refused += 1;
      addCause(tally, "refused", "it is too long.", line);
    } else {
      const query = writeQuery({ dryRun: String(dryRun), file: hash, line, version, followers });
      const view = await call<ImportView>("POST", `${path}${query}`, new Blob([bytes.subarray(start, end)]));
      tally.version ??= view.version;
      tally.followers ??= writeFollowers(view.followers);
      for (const one of view.lines) add(tally, one, dryRun ? known : null);
    }
    tally.lines = line + lines - 1;
    onStep(end / bytes.byteLength, tally);
  }
  return tally;
}

/** Adds a line to the tally. `known` holds the keys of earlier lines in a plan, which stores nothing. */
function add(tally: MissedTally, line: ImportLineView, known: Set<string> | null): void {
  const results = (line.relays ?? [{ relay: null, ...line }]).map((one) => {
    const isAgain = one.outcome === "new" && one.key !== null && known?.has(one.key) === true;
    return isAgain ? { ...one, outcome: "known" as const } : one;
  });
  for (const { key, relay, outcome } of results) {
    if (key !== null) known?.add(key);
    if (relay !== null) countIn(tally.relays, relay)[outcome] += 1;
  }
  const isAgain = line.outcome === "new" && results.every(({ outcome }) => outcome !== "new");
  const refused = results.filter(({ outcome }) => outcome === "refused");
  const outcome = isAgain ? (refused.length > 0 ? "refused" : "known") : line.outcome;
  tally.counts[outcome] += 1;
  if (outcome === "new" && line.verified) tally.verified += 1;
  const shown = outcome === "ignored" ? results.slice(0, 1) : refused;
  for (const { relay, outcome: cause, message } of shown)
    if (cause === "ignored" || cause === "refused")
      addCause(tally, cause, `${relay === null ? "" : `${relay}: `}${message ?? ""}`, line.line);
}

/** Writes followers as the query of an import names them. */
function writeFollowers(followers: readonly { relay: string; version: number }[]): string {
  return followers.map(({ relay, version }) => `${relay}@${version}`).join(",") || "none";
}

function countIn(relays: Map<string, Counts>, relay: string): Counts {
  const counts = relays.get(relay) ?? noneOf();
  relays.set(relay, counts);
  return counts;
}

function addCause(tally: MissedTally, outcome: MissedCause["outcome"], message: string, line: number): void {
  const cause = tally.causes.get(message) ?? { outcome, message, lines: [], count: 0 };
  cause.count += 1;
  if (cause.lines.length < SHOWN_LINES) cause.lines.push(line);
  tally.causes.set(message, cause);
}

function* batchesOf(
  bytes: Uint8Array,
): Generator<{ start: number; end: number; line: number; lines: number }> {
  let [start, end, line, lines] = [0, 0, 1, 0];
  while (end < bytes.byteLength) {
    const found = bytes.indexOf(LF, end);
    const next = found < 0 ? bytes.byteLength : found + 1;
    if (lines > 0 && (next - start > BATCH_BYTES || lines === BATCH_LINES)) {
      yield { start, end, line, lines };
      [start, line, lines] = [end, line + lines, 0];
    }
    [end, lines] = [next, lines + 1];
  }
  if (lines > 0) yield { start, end, line, lines };
}
