/** Shapes that products and plans share. */
import { Type } from "typebox";
import { Refusal } from "../ground/refusal.ts";
import { fields } from "../ground/schema.ts";

export const soldThrough = Type.Union([
  Type.Object({ kind: Type.Literal("payment_link"), url: Type.String() }),
  Type.Object({ kind: Type.Literal("relay"), relay: Type.String() }),
]);

/** The version a deletion was decided on; absent deletes whatever is there. */
export const versionQuery = fields({
  version: Type.Optional(Type.String({ description: "the version you read" })),
});

export function readVersion(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (/^\d{1,9}$/.test(text)) return Number(text);
  throw new Refusal("invalid_input", "version is not valid: write the version you read, an integer.");
}
