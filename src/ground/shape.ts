/**
 * Shapes of what people write (definitions, the catalog) are TypeBox schemas that also carry the words of their own refusal:
 * `expects` completes the sentence "`field` … : it must be <expects>.", `templated` marks strings that may hold {{paths}}.
 * The definition check, the JSON Schema for editors and the dashboard all read the same shapes.
 */

export interface ShapeWords {
  /** One sentence for editors and the dashboard. */
  description: string;
  /** What the value must be, completing "it must be …": "an integer from 1 to 10,000". */
  expects: string;
  /** Whether {{paths}} are filled in at run time. */
  templated?: boolean;
}

/** Names of relays: 2 to 63 characters, lowercase letters, digits, hyphens, starting with a letter. */
export const RELAY_NAME = /^[a-z][a-z0-9-]{1,62}$/;

/** Names of collections, products, plans and access slugs: as relays, underscores too. */
export const CATALOG_NAME = /^[a-z][a-z0-9_-]{0,62}$/;

/** Names in a receiver's map, and of a collection's fields. */
export const FIELD_NAME = /^[A-Za-z_][A-Za-z0-9_-]{0,62}$/;
