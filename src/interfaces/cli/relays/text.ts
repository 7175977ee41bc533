/** Formats a relay for the terminal: a line of the list, or in full. */

import { findMeaning } from "../../../base/code/code.ts";
import type { Warning } from "../../../base/refusal.ts";
import { plain } from "../../../base/text.ts";
import type { RecentRequestView } from "../../../engine/receiver/request.ts";
import type { ChecklistView } from "../../../insight/overview/checklist.ts";
import type { FunnelView } from "../../../insight/overview/funnel.ts";
import type { HealthView, ListedRelayView } from "../../../insight/overview/health.ts";
import type { RelayItem, RelayView } from "../../../rules/relay/relay-view.ts";
import { type Tone, toneOf } from "../terminal/screen.ts";

/** The relay in a list. */
export type ListedRelay = ListedRelayView & Pick<RelayView, "problems">;

/**
 * The relay in full. `warnings` are about the definition with the current catalog. `calls` are the latest requests that created no event,
 * newest first.
 */
export interface RelayStory {
  relay: RelayView;
  health: HealthView;
  /** The note about the relay's remembered signatures, if there are many. */
  remembered?: { message: string } | null | undefined;
  heldAt: string | null;
  warnings: Warning[];
  calls: RecentRequestView[];
}

/** The most requests that the full view shows. */
export const MAX_SHOWN_CALLS = 5;

export function writeStory({ relay, health, remembered, heldAt, warnings, calls }: RelayStory): string[] {
  const { name, secret, lastEventAt, receiverUrl, handshake } = relay;
  const lines: [string, string][] = [
    ["health", formatHealth(health)],
    ["trigger", relay.triggerInWords],
    ...entry("receiver", receiverUrl),
    ...entry("follows", relay.follows),
    ...entry("followers", relay.followers?.join(", ")),
    ...entry("handshake", handshake?.message),
    ...entry("token", handshake?.verifyToken),
    ...entry("next tick", relay.nextTick?.message),
    ["last event", lastEventAt ?? "never"],
    ["last 24 h", formatCounts(relay.last24h)],
    ...(secret.kind === "none" ? [] : entry("secret", formatSecret(secret))),
    ...entry("signatures", remembered?.message),
    ...entry("signing", relay.signingSecret && formatSigning(relay.signingSecret)),
    ...(heldAt === null
      ? []
      : entry(
          "waits",
          `The environment has been on hold since ${heldAt}: release it with relay settings set held off.`,
        )),
    ...(relay.state === "active"
      ? []
      : entry("waits", `The relay is paused: resume it with relay relays resume ${name}.`)),
    ...relay.problems.flatMap(({ code, message }) => entry("problem", `${code}: ${message}`)),
    ...warnings.flatMap(({ message }) => entry("warning", message)),
    ...calls.flatMap((call) => entry("request", formatCall(call))),
    ...(receiverUrl !== undefined && lastEventAt === null && calls.length === 0
      ? entry(
          "requests",
          `No request has arrived yet: give the URL above to the sender, or try relay send ${name}.`,
        )
      : []),
    [
      "more",
      `relay relays funnel ${name}, relay events list --relay ${name}${calls.length === 0 ? "" : `, relay requests list --relay ${name}`}`,
    ],
  ];
  return [
    `${plain(name)}  ${stateOf(relay, heldAt !== null)}  version ${relay.version}, ${formatOrigin(relay)} ${relay.origin.at}`,
    ...lines.map(([what, words]) => `  ${what.padEnd(10)}  ${plain(words)}`),
  ];
}

function formatOrigin({ origin: { kind, promotedFrom } }: RelayView): string {
  if (promotedFrom !== undefined) return `promoted from ${promotedFrom}`;
  return kind === "file" ? "from its file" : "saved";
}

/** Formats the health word, and for a problem the change before it, the reason and the advice. */
function formatHealth({ word, message, todo, code, change, cause }: HealthView): string {
  if (todo === null) return `${word}: ${message}`;
  if (code === null) return `${word}: ${message} ${todo}`;
  // A server of an earlier version sends no change.
  const changed = change == null ? "" : `${change.message} ${change.todo} `;
  const now = cause?.stands === "unknown" ? ` The cause may no longer exist. ${cause.message}` : "";
  return `${word} (${code}): ${changed}${message}${now} ${todo}`;
}

/** Formats the funnel of a relay: a line for each step, with the requests that stopped there below it. */
export function writeFunnel({ relay, boxes, approximate, callsSince, message }: FunnelView): string[] {
  const about = approximate ? "about " : "";
  const lines = boxes.flatMap(({ step, title, passed, waits, waitsFor, stops }) => {
    const least = callsSince !== null && ["calls", "verified", "when", "dedupe"].includes(step);
    const waiting = waits === 0 ? "" : `, ${waits} waiting`;
    return [
      `${String(passed).padStart(8)}${least ? "+" : " "} ${plain(title)}${waiting}`,
      // A server of an earlier version sends no cause.
      ...(waitsFor === null || waitsFor === undefined
        ? []
        : [`          - ${formatRetries(waits, waitsFor.count)} ${formatStop(waitsFor)}`]),
      ...stops.map((stop) => `          - ${about}${stop.count} stopped with ${formatStop(stop)}`),
    ];
  });
  const kept =
    callsSince === null
      ? []
      : [
          `Relay knows the requests without an event since ${callsSince} only, so there were at least as many.`,
        ];
  return [`${plain(relay)}, last 24 hours`, ...lines, plain(message), ...kept];
}

/** Formats the checklist: a line for each step, and what to do below each open one. */
export function writeChecklist({ relay, steps, left, eventTypes }: ChecklistView): string[] {
  const lines = steps.flatMap(({ step, title, done, todo }) => [
    `  [${done ? "x" : " "}] ${plain(title)}`,
    ...(todo === null ? [] : [`      ${plain(todo)}`]),
    ...(step === "event_types" && !done
      ? eventTypes.map(
          ({ type, meaning }) => `      - ${plain(type)}${meaning === null ? "" : `: ${plain(meaning)}`}`,
        )
      : []),
  ]);
  const rest = left === 0 ? "every step is done" : left === 1 ? "1 step is left" : `${left} steps are left`;
  return [`${plain(relay)}: ${rest}`, ...lines];
}

type Stop = FunnelView["boxes"][number]["stops"][number];

/** Formats the cause of a stop, and the command that lists its events or requests. */
function formatStop({ code, message, see }: Stop): string {
  if (see === null) return `${code}: ${plain(message)}`;
  const query = Object.entries(see.query).filter(([name]) => name !== "since");
  const words = query.map(([name, value]) => ` --${name} ${value}`).join("");
  return `${code}: ${plain(message)} (relay ${see.room === "calls" ? "requests" : see.room} list${words})`;
}

/** Formats how many of the waiting events wait after their most frequent failure. */
function formatRetries(waits: number, count: number): string {
  const verb = count === 1 ? "waits" : "wait";
  return waits > count ? `${count} of them ${verb} after` : `${count} ${verb} after`;
}

function entry(what: string, words: string | undefined): [string, string][] {
  return words === undefined ? [] : [[what, words]];
}

export function stateOf({ state }: Pick<RelayItem, "state">, held: boolean): string {
  if (state === "paused") return held ? "paused, on hold" : "paused";
  return held ? "on hold" : "active";
}

/** Returns the tone of a relay's state. A hold of the environment does not change it. */
export function toneOfState({ state }: Pick<RelayItem, "state">): Tone | null {
  return toneOf(state);
}

const HEALTHY: Readonly<Partial<Record<HealthView["state"], Tone>>> = {
  ok: "good",
  new: "quiet",
  paused: "wait",
  held: "wait",
  silent: "wait",
  attention: "wait",
};

export function toneOfHealth({ health }: { health: Pick<HealthView, "state"> }): Tone {
  return HEALTHY[health.state] ?? "bad";
}

export function formatCounts({ approximate, ...counts }: RelayItem["last24h"]): string {
  const parts = Object.entries(counts).flatMap(([state, count]) =>
    count === 0 ? [] : [`${count} ${state}`],
  );
  if (parts.length === 0) return "no events";
  return `${approximate === true ? "about " : ""}${parts.join(", ")}`;
}

function formatSigning({ setAt, previousUntil }: NonNullable<RelayView["signingSecret"]>): string {
  const before = previousUntil === undefined ? "" : `, the previous one also signs until ${previousUntil}`;
  return `a secret since ${setAt}${before}`;
}
function formatSecret({ kind, fingerprint, setAt, previousUntil }: RelayView["secret"]): string | undefined {
  const words = [
    kind.replace("_", " "),
    setAt === null ? "no secret is stored yet" : `since ${setAt}`,
    fingerprint ?? null,
    previousUntil === undefined ? null : `the previous secret is valid until ${previousUntil}`,
  ];
  return words.filter((word) => word !== null).join(", ");
}

function formatCall({ at, outcome, code, count, cause }: RecentRequestView): string {
  const answer =
    outcome === "refused"
      ? `${findMeaning(code, ["refusal"])?.status ?? ""} ${code}`.trim()
      : `200 ${outcome}`;
  return `${at}  ${answer}${count > 1 ? `, ${count} times` : ""}  ${cause}`;
}
