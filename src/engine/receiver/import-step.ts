/** Splits the bytes of an import into steps of a few lines. Each step is one transaction. */
import { Refusal } from "../../base/refusal.ts";
import { formatCount } from "../../base/text.ts";

/** The most lines of one batch, which is one request. */
export const MAX_IMPORT_LINES = 1_000;
/** The most events of one transaction and their bytes, which take some milliseconds. A line is one event of each relay that it is offered to. */
const STEP_EVENTS = 32;
export const STEP_BYTES = 64 * 1024;

export interface Line {
  line: number;
  bytes: Uint8Array;
}

const LF = 0x0a;
const CR = 0x0d;
const BOM = [0xef, 0xbb, 0xbf];

/** Splits the bytes into steps of non-empty lines without their line ends, each at least one line. Throws for a batch of too many lines. */
export function* stepsOf(bytes: Uint8Array, firstLine: number, takers: number): Generator<Line[]> {
  const stepLines = Math.max(1, Math.floor(STEP_EVENTS / takers));
  const stepBytes = STEP_BYTES / takers;
  let step: Line[] = [];
  let held = 0;
  let [line, start] = [firstLine, BOM.every((byte, at) => bytes[at] === byte) ? BOM.length : 0];
  for (; start < bytes.byteLength; line++) {
    if (line - firstLine >= MAX_IMPORT_LINES)
      throw new Refusal(
        "body_too_large",
        `A batch has at most ${formatCount(MAX_IMPORT_LINES)} lines: send the rest in another.`,
      );
    const found = bytes.indexOf(LF, start);
    const end = found < 0 ? bytes.byteLength : found;
    const one = bytes.subarray(start, bytes[end - 1] === CR && end > start ? end - 1 : end);
    start = end + 1;
    if (one.every((byte) => byte === 0x20 || byte === 0x09)) continue;
    if (step.length === stepLines || (step.length > 0 && held + one.byteLength > stepBytes)) {
      yield step;
      [step, held] = [[], 0];
    }
    step.push({ line, bytes: one });
    held += one.byteLength;
  }
  if (step.length > 0) yield step;
}
