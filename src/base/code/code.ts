/** Explains any code of the service. Every place that explains a code shows the parts that `listParts` returns. */
import type { CodeEntry, CodeKind } from "./code-entry.ts";
import { MAIL_FAILURES } from "./mail-code.ts";
import { PROBLEMS } from "./problem-code.ts";
import { REFUSALS } from "./refusal-code.ts";
import { REQUESTS } from "./request-code.ts";
import { RESULTS } from "./result-code.ts";
import { WARNINGS } from "./warning-code.ts";

/** The meaning of a code. A code can have two meanings: `relay_capped` is a refusal and a problem. */
export interface Meaning {
  kinds: CodeKind[];
  /** The HTTP status of a refusal; null for any other code. */
  status: number | null;
  what: string;
  why: string | null;
  todo: string;
  next: string | null;
}

type Registry = Readonly<Record<string, CodeEntry & { status?: number }>>;

/** The registries, each with the kind of its codes. */
const REGISTRIES: readonly (readonly [kind: CodeKind, registry: Registry])[] = [
  ["refusal", REFUSALS],
  ["result", RESULTS],
  ["problem", PROBLEMS],
  ["request", REQUESTS],
  ["warning", WARNINGS],
  ["mail", MAIL_FAILURES],
];

/** Returns the short name of a problem or an alert, and the code itself if it has none. */
export function titleOf(code: string): string {
  const entries = REGISTRIES.map(([, registry]) =>
    Object.hasOwn(registry, code) ? registry[code] : undefined,
  );
  return entries.find((entry) => entry?.title !== undefined)?.title ?? code;
}

/** Lists what a code means, and nothing for an unknown code. */
export function listMeanings(code: string): Meaning[] {
  return REGISTRIES.flatMap(([kind, registry]) => {
    const entry = Object.hasOwn(registry, code) ? registry[code] : undefined;
    if (entry === undefined) return [];
    const { kinds = [kind], status = null, what, why = null, todo, next = null } = entry;
    return [{ kinds: [...kinds], status, what, why, todo, next }];
  });
}

/** Finds what a code means as one of these kinds, otherwise its first meaning. Returns null for an unknown code. */
export function findMeaning(code: string, kinds: readonly CodeKind[] = []): Meaning | null {
  const meanings = listMeanings(code);
  const wanted = meanings.find((meaning) => meaning.kinds.some((kind) => kinds.includes(kind)));
  return wanted ?? meanings[0] ?? null;
}

interface Advice {
  todo: string | null;
  next: string | null;
}

/** Returns what to do about a problem or an alert, and when it resolves. Both are null for a code of another release. */
export function adviseOn(code: string): Advice {
  const meaning = findMeaning(code, ["problem", "alert"]);
  return { todo: meaning?.todo ?? null, next: meaning?.next ?? null };
}

/** Lists every code of the service in alphabetical order. */
export function listCodes(): string[] {
  const codes = REGISTRIES.flatMap(([, registry]) => Object.keys(registry));
  return [...new Set(codes)].sort();
}

interface MeaningPart {
  label: string;
  text: string;
}

/** Lists the parts of a meaning in the order in which every page, command and mail shows them. */
export function listParts({ what, why, todo, next }: Advice & Pick<Meaning, "what" | "why">): MeaningPart[] {
  const texts = { "What happened": what, Why: why, "What to do": todo, "What happens next": next };
  return Object.entries(texts).flatMap(([label, text]) => (text === null ? [] : [{ label, text }]));
}

/** Formats the kinds of a meaning, such as `refusal, HTTP status 404` or `problem, alert`. */
export function formatKinds({ kinds, status }: Pick<Meaning, "kinds" | "status">): string {
  return [...kinds, ...(status === null ? [] : [`HTTP status ${status}`])].join(", ");
}
