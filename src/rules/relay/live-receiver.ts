/**
 * A relay's receiver, ready to verify: its verifier with the unsealed secret, or the reason why it verifies nothing. It also reads an
 * event: the mapped names of the body, whether `when` matches, and the event's own id. It reads only own properties by paths, converts no
 * value and reads no header. It throws where a secret cannot be opened, and never shows one. Source: the specification's "Triggers" and
 * "Map names"; recipes, "Reading the event"; decisions section 3.
 */
import { type Json, type JsonObject, scalarText } from "../../base/json.ts";
import { isKeyText } from "../../base/key-text.ts";
import type { PersonKey } from "../../base/shape.ts";
import type { Sealer } from "../../platform/secret/seal.ts";
import { type Path, parsePath, readField, readPath } from "../../platform/template/template.ts";
import { findPersonKey, type When } from "../trigger/receiver.ts";
import type { BodyKinds, ReceivedRequest, Verifier } from "../verify/contract.ts";
import { answerHandshake, type NamedHandshake } from "../verify/handshake.ts";
import { type BoundScheme, bindScheme, RENAMED_SCHEME } from "../verify/registry.ts";
import { spaceOf } from "./customer-space.ts";
import type { Definition } from "./definition-shape.ts";
import {
  processorSecretContext,
  type RelayRow,
  receiverSecretContext,
  receiverUrl,
  secretMark,
} from "./relay.ts";
import { arrivesUnsigned } from "./unsigned-rule.ts";

/** The reason why a receiver verifies nothing. */
export type ClosedReason =
  | "scheme_renamed"
  | "relay_unsigned_event"
  | "relay_key_as_secret"
  | "no_secret"
  /** The stored definition or secret cannot be opened; the log says why. */
  | "unreadable";

export interface LiveReceiver {
  /** The receiver that it follows; null: it verifies its own requests. A follower has the URL, scheme and secret of its source. */
  source: { id: string; name: string } | null;
  /** The receiver URL, byte for byte as the relay's page shows it. */
  url: string;
  /** null: `closed` says why. */
  verifier: Verifier | null;
  closed: ClosedReason | null;
  /** The kinds of body that its scheme reads. */
  bodies: BodyKinds;
  map: CompiledMap;
  /** The mapped name that identifies the event's person. null: there is none. */
  personKey: PersonKey | null;
  /** The mapped name of the customer's id, and the space of the id. null: the definition has no `customer`. */
  customer: { id: string; space: string } | null;
  when: When | null;
  /** The names of `when` with their paths, so that a request that a relay ignores is not mapped. */
  gate: Gate;
  /** True if the sender does not sign the event itself. */
  unsigned: boolean;
  /** The last request that each of two valid secrets verified. null: only one secret is valid. */
  overlap: SecretUse | null;
  /** The marks by which one-time signatures name their secret. null: there is no such secret. */
  secretMarks: { present: Uint8Array | null; previous: Uint8Array | null };
  /** The sender's handshake; null: the definition names none. */
  handshake: LiveHandshake | null;
}

/** A handshake with the tokens and secrets that answer it. */
export interface LiveHandshake {
  handshake: NamedHandshake;
  verifyToken: string;
  /** The secrets that answer it; "" where it needs none. */
  present: string;
  previous: string;
}

/** Milliseconds since the epoch. null: no request since the service started or the relay was last changed. */
export interface SecretUse {
  /** The time when the previous secret ends. */
  until: number;
  presentAt: number | null;
  previousAt: number | null;
}

type ReceiverRow = Pick<
  RelayRow,
  | "id"
  | "name"
  | "environmentId"
  | "secretKind"
  | "secret"
  | "secretDigest"
  | "previousSecret"
  | "previousSecretDigest"
  | "previousSecretUntil"
> & { appId: string; processorSecret: Uint8Array | null };

/** `row` is the relay's own row, or its source's if it follows one; `definition` then has the source's scheme. */
export function openReceiver(
  row: ReceiverRow,
  definition: Definition,
  rejectsUnsigned: boolean,
  deps: { sealer: Sealer; baseUrl: () => string },
): LiveReceiver | null {
  const trigger = definition.trigger;
  if (trigger.kind !== "receiver") return null;
  const scheme = bindScheme(trigger.verify);
  const isRenamed = trigger.verify.scheme === RENAMED_SCHEME;
  const unsigned = !isRenamed && arrivesUnsigned(trigger);
  const closed = findRuleBreak(isRenamed, unsigned && rejectsUnsigned);
  const opened = closed ?? openVerifier(row, scheme, deps.sealer);
  const isFollower = row.name !== definition.name;
  return {
    source: isFollower ? { id: row.id, name: row.name } : null,
    url: receiverUrl(deps.baseUrl(), row.appId, row.name),
    verifier: typeof opened === "string" ? null : opened,
    closed: typeof opened === "string" ? opened : null,
    bodies: scheme?.bodies ?? "json_or_form",
    map: compileMap(trigger.map),
    personKey: findPersonKey(trigger.map),
    customer: trigger.customer === undefined ? null : { id: trigger.customer.id, space: spaceOf(definition) },
    when: trigger.when ?? null,
    gate: compileGate(trigger.when, trigger.map),
    unsigned,
    overlap:
      row.previousSecret === null || isFollower
        ? null
        : { until: row.previousSecretUntil ?? 0, presentAt: null, previousAt: null },
    secretMarks: { present: secretMark(row.secretDigest), previous: secretMark(row.previousSecretDigest) },
    handshake: openHandshake(row, scheme?.handshake ?? null, deps.sealer),
  };
}

function findRuleBreak(isRenamed: boolean, isUnsignedEvent: boolean): ClosedReason | null {
  if (isRenamed) return "scheme_renamed";
  return isUnsignedEvent ? "relay_unsigned_event" : null;
}

function openHandshake(
  row: ReceiverRow,
  handshake: NamedHandshake | null,
  sealer: Sealer,
): LiveHandshake | null {
  if (handshake === null) return null;
  const open = (sealed: Uint8Array | null): string =>
    sealed === null || handshake.answer === undefined
      ? ""
      : sealer.unseal(sealed, receiverSecretContext(row.id));
  return {
    handshake,
    verifyToken: sealer.verifyToken(row.id),
    present: open(row.secret),
    previous: open(row.previousSecret),
  };
}

/** Reports whether a request is the sender's handshake, verified or not. */
export function isHandshake({ handshake: live }: LiveReceiver, call: ReceivedRequest): boolean {
  return live !== null && answerHandshake(live.handshake, call, live.present) !== null;
}

function openVerifier(row: ReceiverRow, scheme: BoundScheme | null, sealer: Sealer): ClosedReason | Verifier {
  if (scheme === null) return "no_secret";
  const need = scheme.secretNeed();
  if (need === "processor") {
    if (row.processorSecret === null) return "no_secret";
    return scheme.prepare(sealer.unseal(row.processorSecret, processorSecretContext(row.environmentId)));
  }
  if (row.secret === null) return "no_secret";
  if (need === "public_key" && row.secretKind !== "public_key") return "no_secret";
  const secret = sealer.unseal(row.secret, receiverSecretContext(row.id));
  if (need === "shared" && (row.secretKind === "public_key" || isKeyText(secret)))
    return "relay_key_as_secret";
  const verifier = scheme.prepare(secret);
  if (row.previousSecret === null || row.previousSecretUntil === null) return verifier;
  const previous = sealer.unseal(row.previousSecret, receiverSecretContext(row.id));
  if (need === "shared" && isKeyText(previous)) return verifier;
  return overlapVerifiers(verifier, scheme.prepare(previous), row.previousSecretUntil);
}

/** Verifies with both secrets until `untilMs` (since the epoch), then only with the present one. */
function overlapVerifiers(present: Verifier, previous: Verifier, untilMs: number): Verifier {
  return {
    verify(call) {
      const verdict = present.verify(call);
      if (verdict.verified || call.nowMs >= untilMs) return verdict;
      const earlier = previous.verify(call);
      return earlier.verified ? { ...earlier, byPrevious: true } : verdict;
    },
  };
}

/** A map with parsed paths. It is made once for each saved relay and used for every request. */
export type CompiledMap = readonly (readonly [name: string, path: Path])[];

/** Leaves out what is not a path; the definition check rejects it before any save. */
export function compileMap(map: Readonly<Record<string, string>>): CompiledMap {
  const compiled: [string, Path][] = [];
  for (const [name, text] of Object.entries(map)) {
    const path = parsePath(text);
    if (path !== null) compiled.push([name, path]);
  }
  return compiled;
}

/** A parsed body: its JSON value, and a form's pairs; `form` is null for JSON. */
interface ReadBody {
  value: Json;
  form: readonly unknown[] | null;
}

/**
 * Reads the mapped names and their values, in the map's order. A path that resolves to nothing leaves its name out; a JSON null stays. In a
 * form, a field whose name is the complete path comes first.
 */
export function readMap(compiled: CompiledMap, body: ReadBody): JsonObject {
  const read = body.form === null ? readPath : readField;
  const found: [string, Json][] = [];
  for (const [name, path] of compiled) {
    const value = read(body.value, path);
    if (value !== undefined) found.push([name, value]);
  }
  return Object.fromEntries(found);
}

/** The names of `when`: each with the path of its value, null where the map has none, and what the value must be. */
type Gate = readonly (readonly [name: string, path: Path | null, wanted: When[string]])[];

/** Prepares `when` as `compileMap` prepares the map. */
function compileGate(when: When | undefined, map: Readonly<Record<string, string>>): Gate {
  const paths = new Map(compileMap(map));
  return Object.entries(when ?? {}).map(([name, wanted]) => [name, paths.get(name) ?? null, wanted]);
}

/** Returns what `matchesWhen` returns for the map of the body, without reading the other names. */
export function findMismatch(gate: Gate, body: ReadBody): WhenMismatch | null {
  for (const [name, path, wanted] of gate) {
    const read = body.form === null ? readPath : readField;
    const value = path === null ? undefined : read(body.value, path);
    if (!isWanted(scalarText(value), wanted)) {
      const mapped = value === undefined ? {} : { [name]: value };
      return matchesWhen({ [name]: wanted }, mapped);
    }
  }
  return null;
}

function isWanted(found: string | null, wanted: When[string]): boolean {
  return typeof wanted === "string" ? found === wanted : found !== null && wanted.includes(found);
}

/** The first name of `when` that does not match, what it must be (a list: any of it), and what the event has. */
export interface WhenMismatch {
  name: string;
  wanted: string | readonly string[];
  /** null: not a text, number, true or false. */
  found: string | null;
  /** The kind of value that is there if `found` is null, which never matches. */
  instead: "nothing" | "null" | "an object" | "a list" | null;
}

/**
 * Returns null where every name of `when` equals the text of the mapped value (`4200` is "4200") or has it in its list. Else returns the
 * first name that does not. An object, list or null never matches.
 */
export function matchesWhen(when: When | null | undefined, mapped: JsonObject): WhenMismatch | null {
  for (const [name, wanted] of Object.entries(when ?? {})) {
    const found = Object.hasOwn(mapped, name) ? scalarText(mapped[name]) : null;
    if (!isWanted(found, wanted))
      return { name, wanted, found, instead: found === null ? nameKind(mapped, name) : null };
  }
  return null;
}

function nameKind(mapped: JsonObject, name: string): WhenMismatch["instead"] {
  if (!Object.hasOwn(mapped, name)) return "nothing";
  if (mapped[name] === null) return "null";
  return Array.isArray(mapped[name]) ? "a list" : "an object";
}

const INTEGER = /^-?\d+$/;

/** Returns the mapped `event_id` as text: a non-empty string, or an integer with all its digits. Anything else counts as not mapped. */
export function readEventId(mapped: JsonObject): string | null {
  const value = Object.hasOwn(mapped, "event_id") ? mapped.event_id : undefined;
  if (typeof value === "string") return value === "" ? null : value;
  if (typeof value === "bigint") return value.toString();
  if (typeof value === "number") return Number.isSafeInteger(value) ? String(value) : null;
  const digits = scalarText(value);
  return digits !== null && INTEGER.test(digits) ? digits : null;
}
