/** What a relay's definition is, once checked. Source: the specification's "Relay definition". */
import { type Json, parseJson } from "../ground/json.ts";
import type { Trigger } from "../trigger/registry.ts";

export interface Definition {
  /** 2 to 63 characters: the file's name and the last segment of the receiver URL. */
  name: string;
  trigger: Trigger;
  /** 1 to 10, run in order. */
  actions: ActionDefinition[];
}

/** An action as its type's shape says. */
export interface ActionDefinition {
  type: string;
  [field: string]: Json;
}

/** A stored one; it passed the check of the version that saved it, and may name what this version does not know. */
export function readDefinition(text: string): Definition {
  return parseJson(text) as unknown as Definition;
}
