/** Shapes that products and plans share. */
import { t } from "elysia";
import { Refusal } from "../ground/refusal.ts";
import { fields } from "./schema.ts";

export const soldThrough = t.Union([
  t.Object({ kind: t.Literal("payment_link"), url: t.String() }),
  t.Object({ kind: t.Literal("relay"), relay: t.String() }),
]);

/** The version a deletion was decided on; absent deletes whatever is there. */
export const versionQuery = fields({
  version: t.Optional(t.String({ description: "the version you read" })),
});

export function readVersion(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (/^\d{1,9}$/.test(text)) return Number(text);
  throw new Refusal("invalid_input", "version is not valid: write the version you read, an integer.");
}
