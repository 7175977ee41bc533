/**
 * The rules between the fields of a signature recipe, all of them at once. It decides whether a recipe can be saved; it cannot know
 * whether the sender really signs that way. Source: the specification's "Signature recipe fields" and "signedPayload rules"; recipes, "Fields".
 */
import type { Problem } from "../ground/refusal.ts";
import { parsePath } from "../template/path.ts";
import { namesTimestamp, type SignatureFields, signedPayloadOf, timestampSources } from "./recipe-shape.ts";
import { namesPlaceholder, parseSignedPayload } from "./signed-payload.ts";

/** Every rule the recipe breaks; fields that fit the shape. */
export function checkRecipe(fields: SignatureFields): Problem[] {
  return [
    ...checkPlace(fields),
    ...checkParts(fields),
    ...checkTimestamp(fields),
    ...checkPaths(fields),
    ...checkPayload(fields),
  ];
}

function problem(field: string, message: string): Problem[] {
  return [{ field, message }];
}

function checkPlace(fields: SignatureFields): Problem[] {
  if (fields.header !== undefined && fields.signatureField !== undefined) {
    return problem(
      "signatureField",
      "signatureField is set beside header, but a signature is in one place: keep header for a header, signatureField for a body field.",
    );
  }
  if (fields.header !== undefined || fields.signatureField !== undefined) return [];
  return problem(
    "header",
    "header is missing, so nothing says where the signature is: name its header, or set signatureField for a body field.",
  );
}

function checkParts(fields: SignatureFields): Problem[] {
  const problems: Problem[] = [];
  if (fields.signatureKey !== undefined && fields.header === undefined) {
    problems.push(
      ...problem(
        "signatureKey",
        "signatureKey names a part of a header, but header is not set: set header, or remove signatureKey.",
      ),
    );
  }
  if (fields.separator !== undefined && fields.signatureKey === undefined) {
    problems.push(
      ...problem(
        "separator",
        "separator is set without signatureKey, so the header is not split: set signatureKey, or remove separator.",
      ),
    );
  }
  if (fields.timestampKey !== undefined && fields.signatureKey === undefined) {
    problems.push(
      ...problem(
        "timestampKey",
        "timestampKey is set without signatureKey, so the header is not split: set signatureKey, or use timestampHeader or timestampField.",
      ),
    );
  }
  if (fields.timestampKey !== undefined && fields.timestampKey === fields.signatureKey) {
    problems.push(
      ...problem(
        "timestampKey",
        "timestampKey and signatureKey are the same name, so the parts cannot be told apart: name each part as the sender does.",
      ),
    );
  }
  return problems;
}

function checkTimestamp(fields: SignatureFields): Problem[] {
  const problems: Problem[] = [];
  const [first, ...others] = timestampSources(fields);
  for (const other of others) {
    problems.push(
      ...problem(
        other,
        `${other} is set beside ${first}, but the timestamp is in one place: keep the one the sender uses.`,
      ),
    );
  }
  if (fields.toleranceSeconds !== undefined && first === undefined) {
    problems.push(
      ...problem(
        "toleranceSeconds",
        "toleranceSeconds is set, but the recipe names no timestamp: set timestampHeader, timestampKey or timestampField, or remove toleranceSeconds.",
      ),
    );
  }
  if (fields.header !== undefined && fields.timestampHeader?.toLowerCase() === fields.header.toLowerCase()) {
    problems.push(
      ...problem(
        "timestampHeader",
        "timestampHeader is the signature's own header: use timestampKey for a timestamp inside it.",
      ),
    );
  }
  return problems;
}

function checkPaths(fields: SignatureFields): Problem[] {
  const problems: Problem[] = [];
  for (const name of ["signatureField", "timestampField", "tokenField"] as const) {
    const text = fields[name];
    if (text !== undefined && parsePath(text) === null) {
      problems.push(
        ...problem(
          name,
          `${name} is not a dotted path: write the names on the way to the field, such as signature.timestamp.`,
        ),
      );
    }
  }
  for (const name of ["timestampField", "tokenField"] as const) {
    if (fields[name] !== undefined && fields[name] === fields.signatureField) {
      problems.push(
        ...problem(
          name,
          `${name} is the same field as signatureField, which never verifies: name the field the sender uses for it.`,
        ),
      );
    }
  }
  return problems;
}

function checkPayload(fields: SignatureFields): Problem[] {
  const text = signedPayloadOf(fields);
  const names = (name: string) => namesPlaceholder(text, name);
  const problems: Problem[] = [];
  const add = (field: string, message: string) => problems.push({ field, message });

  const parsed = parseSignedPayload(text);
  if ("problems" in parsed) for (const message of parsed.problems) add("signedPayload", message);

  if (namesTimestamp(fields) && !names("timestamp")) {
    add(
      "signedPayload",
      "signedPayload leaves out {timestamp} although the recipe names a timestamp, which would then protect nothing: add {timestamp} where the sender signs it.",
    );
  }
  if (!namesTimestamp(fields) && names("timestamp")) {
    add(
      "signedPayload",
      "signedPayload has {timestamp} but nothing says where it is: set timestampHeader, timestampKey or timestampField.",
    );
  }
  if (names("token") && fields.tokenField === undefined) {
    add(
      "tokenField",
      "tokenField is missing although signedPayload has {token}: name the body field that holds the token.",
    );
  }
  if (!names("token") && fields.tokenField !== undefined) {
    add(
      "tokenField",
      "tokenField is set but signedPayload has no {token}: remove tokenField, or sign {token}.",
    );
  }
  if (fields.signatureField !== undefined && (names("body") || names("params"))) {
    add(
      "signedPayload",
      "signedPayload signs {body} or {params}, which hold the signature itself when it is in signatureField: sign {token}, or read the signature from a header.",
    );
  }
  return problems;
}
