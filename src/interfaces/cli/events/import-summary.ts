/** Summarizes an import or its plan: counts, and the causes of ignored and refused lines with their line numbers. */
import { plain } from "../../../base/text.ts";
import type { ImportLineView } from "../../../engine/receiver/import.ts";

/** The most causes that a summary shows for lines that are not imported, and the most lines of each. */
const SHOWN_CAUSES = 10;
const SHOWN_LINES = 8;
/** The most lines that --json lists. */
const LISTED_LINES = 1_000;

interface Cause {
  outcome: ImportLineView["outcome"];
  code: string | null;
  message: string;
  lines: number[];
  count: number;
}

/** The result of the lines so far. */
export class MissedTally {
  readonly counts = { new: 0, known: 0, ignored: 0, refused: 0 };
  /** The number of new lines with a verified signature. */
  verified = 0;
  unsigned = 0;
  /** The number of the last line. */
  lines = 0;
  /** The version of the relay that checked the lines. */
  version: number | null = null;
  /** The code of the first refused line. */
  refusedCode: string | null = null;
  readonly #known = new Set<string>();
  readonly #causes = new Map<string, Cause>();
  readonly #listed: ImportLineView[] = [];

  /** Adds a line. In a plan (`planned`), an event that occurs twice counts as new only once. */
  add(line: ImportLineView, planned: boolean): void {
    const { key, code, message } = line;
    const outcome =
      planned && line.outcome === "new" && key !== null && this.#known.has(key) ? "known" : line.outcome;
    if (key !== null) this.#known.add(key);
    this.counts[outcome] += 1;
    if (outcome === "new" && line.verified) this.verified += 1;
    if (outcome === "new" && line.unsigned) this.unsigned += 1;
    if (outcome !== "ignored" && outcome !== "refused") return;
    if (outcome === "refused") this.refusedCode ??= code;
    if (this.#listed.length < LISTED_LINES) this.#listed.push(line);
    const name = `${outcome} ${message}`;
    const cause = this.#causes.get(name) ?? { outcome, code, message: message ?? "", lines: [], count: 0 };
    cause.count += 1;
    if (cause.lines.length < SHOWN_LINES) cause.lines.push(line.line);
    // Each line may have a different cause, because the message names the value that `when` compares.
    if (this.#causes.size < LISTED_LINES) this.#causes.set(name, cause);
  }

  addTooLong(line: number): void {
    const message = "the line is too long to send.";
    const nothing = { eventId: null, key: null, verified: false, unsigned: false };
    this.add({ line, outcome: "refused", code: "body_too_large", message, ...nothing }, false);
  }

  /** Formats the summary, line by line. */
  words(): string[] {
    const { new: made, known, ignored, refused } = this.counts;
    const of = (outcome: Cause["outcome"]) =>
      [...this.#causes.values()].filter((one) => one.outcome === outcome);
    return [
      `${pad(made)}  new${made === 0 ? "" : `: ${this.verified} with a valid signature, ${this.unsigned} unsigned`}`,
      `${pad(known)}  already known`,
      `${pad(ignored)}  ignored by when`,
      ...sayCauses(of("ignored")),
      `${pad(refused)}  refused`,
      ...sayCauses(of("refused")),
    ];
  }

  view(relay: string, sha256: string, imported: boolean) {
    const { counts, verified, unsigned, lines, version } = this;
    return { relay, version, imported, sha256, lines, ...counts, verified, unsigned, told: this.#listed };
  }
}

function sayCauses(causes: readonly Cause[]): string[] {
  const sorted = [...causes].sort((one, other) => other.count - one.count);
  const shown = sorted.slice(0, SHOWN_CAUSES);
  const left = sorted.slice(SHOWN_CAUSES).reduce((sum, one) => sum + one.count, 0);
  return [
    ...shown.map(({ lines, count: many, code, message }) => {
      const more = many > lines.length ? ` and ${many - lines.length} more` : "";
      return `         line${many === 1 ? "" : "s"} ${lines.join(", ")}${more}: ${plain(message)}${code === null ? "" : `  ${plain(code)}`}`;
    }),
    ...(left > 0
      ? [`         and more lines with other causes; --json lists up to ${LISTED_LINES} lines`]
      : []),
  ];
}

function pad(many: number): string {
  return String(many).padStart(7);
}
