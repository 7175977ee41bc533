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

/** Words of a union whose members are told apart by one property, a literal in each: `kind`, `type`, `scheme`. */
interface UnionWords extends ShapeWords {
  discriminator: string;
  /** Names of old, and what each is called now; the old name is refused, the rest is checked as the new one. */
  renamed?: Readonly<Record<string, string>>;
}

/** Words of an object with fixed names. */
interface ObjectWords extends ShapeWords {
  /** Names that people write here by mistake, and the sentence part that says what to do instead: "remove it: …". */
  strangers?: Readonly<Record<string, string>>;
}

/** Words of an object with free names (a record). */
interface RecordWords extends ShapeWords {
  /** What a name must be, completing "the name must be …". */
  expectsName: string;
}

/** A shape as its readers walk it: the part of a TypeBox schema that holds structure, and the words. */
export interface ShapeNode extends Partial<ShapeWords & UnionWords & ObjectWords & RecordWords> {
  type?: string;
  const?: unknown;
  enum?: readonly unknown[];
  anyOf?: readonly ShapeNode[];
  properties?: Readonly<Record<string, ShapeNode>>;
  required?: readonly string[];
  additionalProperties?: boolean | ShapeNode;
  patternProperties?: Readonly<Record<string, ShapeNode>>;
  items?: ShapeNode;
  minItems?: number;
  maxItems?: number;
  uniqueItems?: boolean;
  minProperties?: number;
  maxProperties?: number;
  minLength?: number;
  maxLength?: number;
  pattern?: string;
}

/** Names of relays: 2 to 63 characters, lowercase letters, digits, hyphens, starting with a letter. */
export const RELAY_NAME = /^[a-z][a-z0-9-]{1,62}$/;

/** Names of collections, products, plans and access slugs: as relays, underscores too. */
export const CATALOG_NAME = /^[a-z][a-z0-9_-]{0,62}$/;

/** Names in a receiver's map, and of a collection's fields. */
export const FIELD_NAME = /^[A-Za-z_][A-Za-z0-9_-]{0,62}$/;
