/** Summarizes an import or its plan: counts, and the causes of ignored and refused lines with their line numbers. */
import { plain } from "../../../base/text.ts";
import { formatFollowers, type ImportLineView, type ImportView } from "../../../engine/receiver/import.ts";

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

type Counts = Record<ImportLineView["outcome"], number>;
const noneOf = (): Counts => ({ new: 0, known: 0, ignored: 0, refused: 0 });

/** The result of the lines so far. */
export class MissedTally {
  readonly counts = noneOf();
  /** The lines that each relay could read, by its result. It is empty where no relay follows the receiver. */
  readonly relays = new Map<string, Counts>();
  /** The number of new lines with a verified signature. */
  verified = 0;
  unsigned = 0;
  /** The number of the last line. */
  lines = 0;
  /** The version of the relay that checked the lines. */
  version: number | null = null;
  /** The followers that checked the lines, with their versions. */
  followers: string | null = null;
  /** The lines that a relay refused, even where another one takes them. */
  refusedLines = 0;
  /** The code of the first refused line. */
  refusedCode: string | null = null;
  readonly #known = new Set<string>();
  readonly #causes = new Map<string, Cause>();
  readonly #listed: ImportLineView[] = [];

  /** Keeps the relays that checked the first batch, so that the import can name them. */
  note({ version, followers }: ImportView): void {
    this.version ??= version;
    this.followers ??= formatFollowers(followers);
  }

  /** The number of new events, of all relays. */
  get events(): number {
    if (this.relays.size === 0) return this.counts.new;
    return [...this.relays.values()].reduce((sum, one) => sum + one.new, 0);
  }

  /** Adds a line. In a plan (`planned`), an event that occurs twice counts as new only once. */
  add(line: ImportLineView, planned: boolean): void {
    const results = (line.relays ?? [{ relay: null, ...line }]).map((one) => {
      const isAgain = planned && one.outcome === "new" && one.key !== null && this.#known.has(one.key);
      return isAgain ? { ...one, outcome: "known" as const } : one;
    });
    for (const { key, relay, outcome } of results) {
      if (key !== null) this.#known.add(key);
      if (relay !== null) countIn(this.relays, relay)[outcome] += 1;
    }
    const isAgain = line.outcome === "new" && results.every(({ outcome }) => outcome !== "new");
    const refused = results.filter(({ outcome }) => outcome === "refused");
    const outcome = isAgain ? (refused.length > 0 ? "refused" : "known") : line.outcome;
    this.counts[outcome] += 1;
    if (outcome === "new" && line.verified) this.verified += 1;
    if (outcome === "new" && line.unsigned) this.unsigned += 1;
    if (refused.length > 0) this.refusedLines += 1;
    this.refusedCode ??= refused[0]?.code ?? null;
    if (outcome !== "ignored" && refused.length === 0) return;
    if (this.#listed.length < LISTED_LINES) this.#listed.push(line);
    const shown = outcome === "ignored" ? results.slice(0, 1) : refused;
    for (const { relay, outcome: cause, code, message } of shown)
      this.#addCause(line.line, cause, code, `${relay === null ? "" : `${relay}: `}${message ?? ""}`);
  }

  #addCause(line: number, outcome: Cause["outcome"], code: string | null, message: string): void {
    const name = `${outcome} ${message}`;
    const cause = this.#causes.get(name) ?? { outcome, code, message, lines: [], count: 0 };
    cause.count += 1;
    if (cause.lines.length < SHOWN_LINES) cause.lines.push(line);
    // Each line may have a different cause, because the message names the value that `when` compares.
    if (this.#causes.size < LISTED_LINES) this.#causes.set(name, cause);
  }

  addTooLong(line: number): void {
    const message = "the line is too long to send.";
    const noEvent = { eventId: null, key: null, verified: false, unsigned: false, relays: null };
    this.add({ line, outcome: "refused", code: "body_too_large", message, ...noEvent }, false);
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
      ...formatCauses(of("ignored")),
      `${pad(refused)}  refused`,
      ...formatCauses(of("refused")),
      ...this.#relayWords(),
    ];
  }

  #relayWords(): string[] {
    const [first] = this.relays.keys();
    if (first === undefined) return [];
    return [
      `${pad(this.events)}  new events of ${plain(first)} and its followers`,
      ...[...this.relays].map(
        ([relay, { new: made, known, ignored, refused }]) =>
          `${pad(made)}  at ${plain(relay)}: ${known} already known, ${ignored} ignored, ${refused} refused`,
      ),
    ];
  }

  view(relay: string, sha256: string, imported: boolean) {
    const { counts, verified, unsigned, lines, version } = this;
    const relays = [...this.relays].map(([name, own]) => ({ relay: name, ...own }));
    const offered = relays.length === 0 ? {} : { events: this.events, relays };
    return {
      relay,
      version,
      imported,
      sha256,
      lines,
      ...counts,
      verified,
      unsigned,
      ...offered,
      told: this.#listed,
    };
  }
}

function countIn(relays: Map<string, Counts>, relay: string): Counts {
  const counts = relays.get(relay) ?? noneOf();
  relays.set(relay, counts);
  return counts;
}

function formatCauses(causes: readonly Cause[]): string[] {
  const sorted = [...causes].sort((one, other) => other.count - one.count);
  const shown = sorted.slice(0, SHOWN_CAUSES);
  const left = sorted.slice(SHOWN_CAUSES).reduce((sum, one) => sum + one.count, 0);
  return [
    ...shown.map(({ lines, count: lineCount, code, message }) => {
      const more = lineCount > lines.length ? ` and ${lineCount - lines.length} more` : "";
      return `         line${lineCount === 1 ? "" : "s"} ${lines.join(", ")}${more}: ${plain(message)}${code === null ? "" : `  ${plain(code)}`}`;
    }),
    ...(left > 0
      ? [`         and more lines with other causes; --json lists up to ${LISTED_LINES} lines`]
      : []),
  ];
}

function pad(lineCount: number): string {
  return String(lineCount).padStart(7);
}
