/**
 * What a trigger is: one file a kind, one line in registry.ts. A trigger's file says what a definition may say and what a template may
 * read; the rooms receiver/, schedule/ and capture/ make it happen.
 */
import type { TSchema } from "typebox";
import type { Problem } from "../../base/refusal.ts";

type TriggerKind = "receiver" | "schedule" | "data_change";

export interface TriggerType<Trigger = unknown> {
  kind: TriggerKind;
  /** For lists: "A signed webhook from a provider". */
  title: string;
  /** TypeBox object schema, `kind` included as a literal, additionalProperties false, every property with ShapeWords. */
  shape: TSchema;
  /**
   * Rules beyond the shape; `field` is relative to the trigger (`map.person_id`). Called with the fields that fit their shapes; one that
   * does not is left out, so that the others' problems are told at once.
   */
  check(trigger: Partial<Trigger>): Problem[];
  /** Whether an event of this kind can have a person at all. */
  canHavePerson: boolean;
  /** First words of the template paths it offers: receiver `event`, `mapped`, `person`; schedule `tick`; data_change `record`, `person`. */
  templateRoots: readonly string[];
  /** The trigger in words: "every Monday at 09:00 UTC". */
  inWords(trigger: Trigger): string;
  examples: readonly Trigger[];
}
