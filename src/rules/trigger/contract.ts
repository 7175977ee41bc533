/**
 * Defines the contract of a trigger. Each kind has one file, and one line in registry.ts. A trigger's file says what a definition and its templates
 * may contain; the engine makes it happen.
 */
import type { TSchema } from "typebox";
import type { Problem } from "../../base/refusal.ts";

type TriggerKind = "receiver" | "schedule" | "data_change";

export interface TriggerType<Trigger = unknown> {
  kind: TriggerKind;
  /** The title in lists: "A signed webhook from a provider". */
  title: string;
  /** TypeBox object schema: `kind` included as a literal, additionalProperties false, every property with ShapeWords. */
  shape: TSchema;
  /**
   * Checks rules beyond the shape. It gets only the fields that fit their shapes, so that all problems are reported at once. `field` is
   * relative to the trigger (`map.person_id`).
   */
  check(trigger: Partial<Trigger>): Problem[];
  /** True if an event of this kind can have a person. */
  canHavePerson: boolean;
  /** The first words of its template paths: receiver `event`, `mapped`, `person`; schedule `tick`; data_change `record`, `person`. */
  templateRoots: readonly string[];
  /** Describes the trigger: "every Monday at 09:00 UTC". */
  inWords(trigger: Trigger): string;
  examples: readonly Trigger[];
}
