/**
 * Finds the saved relays of a selling kit, and the names that the seller gave. The names come from the relays: a life then plays with the names that
 * their `when` requires, also after the seller changed them.
 */
import { isJsonObject, type Json } from "../../base/json.ts";
import type { Kit } from "../senders/kit.ts";
import { KIT_NAMES, type KitNames } from "../senders/kit-definitions.ts";
import type { Definition } from "./definition-shape.ts";

type NamedRelay = { name: string; definition: Definition };

interface SavedKit<Relay> {
  /** The saved relays that follow the source. */
  relays: readonly Relay[];
  /** The names of relays of the kit that do not exist. */
  missing: readonly string[];
  names: KitNames;
}

type Found = Partial<KitNames>;

/** `followers`: the relays that follow the kit's source. */
export function findSavedKit<Relay extends NamedRelay>(
  kit: Kit,
  followers: readonly Relay[],
): SavedKit<Relay> {
  const byName = new Map(followers.map((relay) => [relay.name, relay]));
  const named: Found = {};
  const asked: Found = {};
  const missing: string[] = [];
  const relays: Relay[] = [];
  // The relays with a fixed name say how the others are called.
  for (const { name, actions } of kit.relays)
    readNames(actions as Json, toJson(byName.get(`${kit.sender}-${name}`)?.definition.actions), named);
  for (const { name, when } of kit.relays) {
    const known = fillKnown(`${kit.sender}-${name}`, named);
    const relay = byName.get(known) ?? findByPattern(known, followers, relays, named);
    if (relay === null) {
      missing.push(fillKnown(known, KIT_NAMES));
      continue;
    }
    relays.push(relay);
    const { trigger } = relay.definition;
    if (trigger.kind === "receiver") readNames(when as Json, toJson(trigger.when), asked);
  }
  return { relays, missing, names: { ...KIT_NAMES, ...named, ...asked } };
}

const NAME = /\{(product|plan2?)\}/;

function fillKnown(text: string, names: Found): string {
  return text.replace(NAME, (given, name: keyof KitNames) => names[name] ?? given);
}

/** Finds the first relay whose name differs from the pattern only in the seller's name, and notes that name. */
function findByPattern<Relay extends NamedRelay>(
  pattern: string,
  followers: readonly Relay[],
  taken: readonly Relay[],
  named: Found,
): Relay | null {
  const [before = "", name, after = ""] = pattern.split(NAME);
  if (name === undefined) return null;
  const relay = followers.find(
    (one) => one.name.startsWith(before) && one.name.endsWith(after) && !taken.includes(one),
  );
  if (relay === undefined) return null;
  named[name as keyof KitNames] = relay.name.slice(before.length, relay.name.length - after.length);
  return relay;
}

function toJson(value: unknown): Json | undefined {
  return value as Json | undefined;
}

/** Notes what a saved value has where the kit's value has only a name. */
function readNames(pattern: Json, saved: Json | undefined, names: Found): void {
  if (typeof pattern === "string") {
    const [before, name, after] = pattern.split(NAME);
    const value = Array.isArray(saved) ? saved[0] : saved;
    if (before === "" && after === "" && typeof value === "string") names[name as keyof KitNames] ??= value;
    return;
  }
  if (Array.isArray(pattern)) {
    if (Array.isArray(saved)) for (const [at, one] of pattern.entries()) readNames(one, saved[at], names);
    return;
  }
  if (isJsonObject(pattern) && saved !== undefined && isJsonObject(saved))
    for (const [key, one] of Object.entries(pattern)) readNames(one, saved[key], names);
}
