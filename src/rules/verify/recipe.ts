/**
 * A signature recipe, which describes how a sender signs: its fields with their defaults, the grammar of `signedPayload`, and every rule
 * between fields. It reads no request and cannot know whether the sender really signs so. Source: the specification's "Signature recipe
 * fields" and "signedPayload rules" 1 to 3; recipes, "Fields".
 */

import type { PublicKeyAlgorithm } from "../../base/key-text.ts";
import { MAX_SIGNED_PAYLOAD_LITERAL_CHARS } from "../../base/limit.ts";
import type { Problem } from "../../base/refusal.ts";
import type { Encoding } from "../../base/text.ts";
import { parsePath } from "../../platform/template/template.ts";
import type { HmacHash } from "./signature-proof.ts";

type HmacAlgorithm = `hmac-${HmacHash}`;
export type Algorithm = HmacAlgorithm | PublicKeyAlgorithm;
type Separator = "," | ";";

export interface SignatureFields {
  scheme: "signature";
  algorithm?: Algorithm;
  header?: string;
  signatureKey?: string;
  separator?: Separator;
  signatureField?: string;
  timestampHeader?: string;
  timestampKey?: string;
  timestampField?: string;
  toleranceSeconds?: number;
  signedPayload?: string;
  tokenField?: string;
  encoding?: Encoding;
}

export const DEFAULT_ALGORITHM: Algorithm = "hmac-sha256";
export const DEFAULT_ENCODING: Encoding = "hex";
export const DEFAULT_SEPARATOR: Separator = ",";

/** Returns the signed payload. The default is the body, after the timestamp where the recipe names one. */
export function signedPayloadOf(fields: SignatureFields): string {
  return fields.signedPayload ?? (namesTimestamp(fields) ? "{timestamp}.{body}" : "{body}");
}

function namesTimestamp(fields: SignatureFields): boolean {
  return timestampSources(fields).length > 0;
}

/** Lists the fields that say where the timestamp is. */
function timestampSources(
  fields: SignatureFields,
): ("timestampHeader" | "timestampKey" | "timestampField")[] {
  const sources = ["timestampHeader", "timestampKey", "timestampField"] as const;
  return sources.filter((source) => fields[source] !== undefined);
}

/** A rule between fields, and whether a recipe breaks it. */
type Rule = readonly [broken: boolean, field: keyof SignatureFields, message: string];

/** Lists every rule that a recipe breaks, for fields that fit the shape. */
export function checkRecipe(fields: SignatureFields): Problem[] {
  const rules = [
    ...placeRules(fields),
    ...timestampRules(fields),
    ...pathRules(fields),
    ...payloadRules(fields),
  ];
  return rules.flatMap(([broken, field, message]) => (broken ? [{ field, message }] : []));
}

function placeRules({
  header,
  signatureField,
  signatureKey,
  separator,
  timestampKey,
}: SignatureFields): Rule[] {
  const isSplit = signatureKey !== undefined;
  return [
    [
      header !== undefined && signatureField !== undefined,
      "signatureField",
      "signatureField and header are both set, but a signature is in one place: keep header for a header, or signatureField for a body field.",
    ],
    [
      header === undefined && signatureField === undefined,
      "header",
      "header is missing, so the place of the signature is unknown: set its header, or set signatureField for a body field.",
    ],
    [
      isSplit && header === undefined,
      "signatureKey",
      "signatureKey names a part of a header, but header is not set: set header, or remove signatureKey.",
    ],
    [
      separator !== undefined && !isSplit,
      "separator",
      "separator is set without signatureKey, so the header is not split: set signatureKey, or remove separator.",
    ],
    [
      timestampKey !== undefined && !isSplit,
      "timestampKey",
      "timestampKey is set without signatureKey, so the header is not split: set signatureKey, or use timestampHeader or timestampField.",
    ],
    [
      timestampKey !== undefined && timestampKey === signatureKey,
      "timestampKey",
      "timestampKey and signatureKey have the same name, so the parts cannot be distinguished: name each part as the sender does.",
    ],
  ];
}

function timestampRules(fields: SignatureFields): Rule[] {
  const [first, ...others] = timestampSources(fields);
  const { header, timestampHeader, toleranceSeconds } = fields;
  return [
    ...others.map(
      (other): Rule => [
        true,
        other,
        `${other} and ${first} are both set, but the timestamp is in one place: keep the one that the sender uses.`,
      ],
    ),
    [
      toleranceSeconds !== undefined && first === undefined,
      "toleranceSeconds",
      "toleranceSeconds is set, but the recipe names no timestamp: set timestampHeader, timestampKey or timestampField, or remove toleranceSeconds.",
    ],
    [
      header !== undefined && timestampHeader?.toLowerCase() === header.toLowerCase(),
      "timestampHeader",
      "timestampHeader is the signature's own header: use timestampKey for a timestamp inside it.",
    ],
  ];
}

function pathRules(fields: SignatureFields): Rule[] {
  const paths = ["signatureField", "timestampField", "tokenField"] as const;
  return [
    ...paths.map((name): Rule => {
      const text = fields[name];
      return [
        text !== undefined && parsePath(text) === null,
        name,
        `${name} is not a dotted path: write the names that lead to the field, such as signature.timestamp.`,
      ];
    }),
    ...paths
      .slice(1)
      .map(
        (name): Rule => [
          fields[name] !== undefined && fields[name] === fields.signatureField,
          name,
          `${name} is the same field as signatureField, which never verifies: name the field the sender uses for it.`,
        ],
      ),
  ];
}

function payloadRules(fields: SignatureFields): Rule[] {
  const text = signedPayloadOf(fields);
  const names = (name: string) => namesPlaceholder(text, name);
  const parsed = parseSignedPayload(text);
  const timed = namesTimestamp(fields);
  return [
    ...("problems" in parsed ? parsed.problems : []).map((message): Rule => [true, "signedPayload", message]),
    [
      timed && !names("timestamp"),
      "signedPayload",
      "signedPayload leaves out {timestamp} although the recipe names a timestamp, so the timestamp would protect nothing: add {timestamp} where the sender signs it.",
    ],
    [
      !timed && names("timestamp"),
      "signedPayload",
      "signedPayload has {timestamp}, but the recipe does not name its place: set timestampHeader, timestampKey or timestampField.",
    ],
    [
      names("token") && fields.tokenField === undefined,
      "tokenField",
      "tokenField is missing although signedPayload has {token}: name the body field that holds the token.",
    ],
    [
      !names("token") && fields.tokenField !== undefined,
      "tokenField",
      "tokenField is set but signedPayload has no {token}: remove tokenField, or sign {token}.",
    ],
    [
      fields.signatureField !== undefined && (names("body") || names("params")),
      "signedPayload",
      "signedPayload signs {body} or {params}, which contain the signature itself if it is in signatureField: sign {token}, or read the signature from a header.",
    ],
  ];
}

type Tail = "body" | "params" | "token";

/** A parsed signedPayload: the pieces before the tail, in order. */
export interface SignedPayload {
  head: readonly ({ literal: string } | "timestamp" | "url")[];
  tail: Tail;
  usesTimestamp: boolean;
  usesUrl: boolean;
}

const TAILS: readonly string[] = ["body", "params", "token"] satisfies Tail[];
const PLACEHOLDERS: readonly string[] = ["timestamp", "url", ...TAILS];
const PIECE = /\{([^{}]*)\}|[^{}]+|[{}]/g;
const LITERAL = /^[A-Za-z0-9.:_-]*$/;
const TAIL_WORDS = "{body}, {params} or {token}";

/** Parses a signedPayload, or lists every rule that it breaks, one sentence each. */
export function parseSignedPayload(text: string): SignedPayload | { problems: string[] } {
  const pieces = [...text.matchAll(PIECE)].map((match) => ({ text: match[0], name: match[1] ?? null }));
  const names = pieces.flatMap((piece) => (piece.name === null ? [] : [piece.name]));
  const literals = pieces.filter((piece) => piece.name === null).map((piece) => piece.text);
  const problems = [
    ...checkNames(names),
    ...checkTail(names, pieces.at(-1)?.name ?? null),
    ...checkLiterals(literals.join("")),
    ...checkAfterTimestamp(pieces),
  ];
  if (problems.length > 0) return { problems };
  return {
    head: pieces.slice(0, -1).map((piece) => {
      if (piece.name === "timestamp" || piece.name === "url") return piece.name;
      return { literal: piece.text };
    }),
    tail: names.at(-1) as Tail,
    usesTimestamp: names.includes("timestamp"),
    usesUrl: names.includes("url"),
  };
}

/** Reports whether a text contains the placeholder, well formed or not. */
export function namesPlaceholder(text: string, name: string): boolean {
  return text.includes(`{${name}}`);
}

function checkNames(names: readonly string[]): string[] {
  const problems: string[] = [];
  for (const name of new Set(names)) {
    if (!PLACEHOLDERS.includes(name)) {
      problems.push(
        `signedPayload names {${name}}, which is not a placeholder: use {timestamp}, {url} and one of ${TAIL_WORDS}.`,
      );
    } else if (names.filter((other) => other === name).length > 1) {
      problems.push(`signedPayload names {${name}} more than once: name each placeholder once.`);
    }
  }
  return problems;
}

function checkTail(names: readonly string[], last: string | null): string[] {
  const tails = [...new Set(names.filter((name) => TAILS.includes(name)))];
  if (tails.length === 0) {
    return [
      `signedPayload names none of ${TAIL_WORDS}, so it signs nothing of the event: end it with one of them.`,
    ];
  }
  if (tails.length > 1) {
    const found = tails.map((name) => `{${name}}`).join(" and ");
    return [
      `signedPayload names ${found}, but a recipe signs one of them: keep the one that the sender signs.`,
    ];
  }
  if (last === null || !TAILS.includes(last)) {
    return [
      `signedPayload has text after {${tails[0]}}, which must be at its end: move {${tails[0]}} to the end.`,
    ];
  }
  return [];
}

function checkLiterals(literal: string): string[] {
  const problems: string[] = [];
  if (!LITERAL.test(literal)) {
    problems.push(
      "signedPayload has a character that cannot surround placeholders: use only letters, digits, dot, colon, underscore and hyphen.",
    );
  }
  if (literal.length > MAX_SIGNED_PAYLOAD_LITERAL_CHARS) {
    problems.push(
      `signedPayload has ${literal.length} characters around its placeholders: use at most ${MAX_SIGNED_PAYLOAD_LITERAL_CHARS}.`,
    );
  }
  return problems;
}

function checkAfterTimestamp(pieces: readonly { text: string; name: string | null }[]): string[] {
  const problems: string[] = [];
  pieces.forEach((piece, at) => {
    if (piece.name !== "timestamp") return;
    const next = pieces[at + 1];
    if (next?.name === "params") {
      problems.push(
        "signedPayload has {params} directly after {timestamp}, so a digit could belong to either: put a character such as . between them.",
      );
    } else if (next?.name === null && /^[0-9]/.test(next.text)) {
      problems.push(
        "signedPayload has a digit directly after {timestamp}, so the two cannot be distinguished: put a character such as . between them.",
      );
    }
  });
  return problems;
}
