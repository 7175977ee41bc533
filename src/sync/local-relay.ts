/**
 * One definition file put into the local environment: its relay is created or changed, or deleted once the file is gone. An edit made in
 * the dashboard later than the file was written stays until the file is saved again.
 */
import { writeJson } from "../ground/json.ts";
import { Refusal, tellWarnings, type Warning } from "../ground/refusal.ts";
import type { Definition } from "../relay/definition-shape.ts";
import { findRelay } from "../relay/relay.ts";
import { createRelay, updateRelay } from "../relay/relay-save.ts";
import { deleteRelay } from "../relay/relay-state.ts";
import { type LocalParts, relayContext } from "./local-parts.ts";

type Applied =
  /** `warnings`: without those about what the relay names, which may be in the catalog that is applied after it. */
  | { outcome: "created" | "changed"; warnings: string[] }
  | { outcome: "same" }
  /** The dashboard's edit is newer than the file. */
  | { outcome: "kept" }
  | { outcome: "refused"; message: string };

const FROM_FILE = { kind: "file", synced: false } as const;

/** `writtenMs`: when the file was written, where a newer edit in the dashboard shall win; null where the file wins. */
export async function applyDefinition(
  parts: LocalParts,
  input: {
    definition: Definition;
    secret: string | null;
    signingSecret: string | null;
    writtenMs: number | null;
  },
): Promise<Applied> {
  const { definition, secret, signingSecret, writtenMs } = input;
  const { name } = definition;
  try {
    return await parts.store.write("dashboard", async (tx): Promise<Applied> => {
      const context = relayContext(parts);
      const row = await findRelay(tx, context.environment.id, name);
      if (row === null) {
        const made = await createRelay(tx, context, { definition, secret, signingSecret, origin: FROM_FILE });
        return {
          outcome: "created",
          warnings: withoutReferences(made.warnings),
        };
      }
      if (writeJson(row.definition) === writeJson(definition)) return { outcome: "same" };
      if (writtenMs !== null && row.originKind === "dashboard" && row.originAt > writtenMs) {
        return { outcome: "kept" };
      }
      const saved = await updateRelay(tx, context, name, {
        definition,
        version: row.version,
        origin: FROM_FILE,
      });
      return { outcome: "changed", warnings: withoutReferences(saved.warnings) };
    });
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    return { outcome: "refused", message: error.message };
  }
}

/** What the relay names may be in the catalog that is applied after it. */
const OF_REFERENCES: ReadonlySet<string> = new Set([
  "reference_missing",
  "not_sold_here",
  "record_does_not_fit",
]);

function withoutReferences(warnings: readonly Warning[]): string[] {
  return tellWarnings(warnings.filter(({ code }) => !OF_REFERENCES.has(code)));
}

/** Deletes the relay whose file is gone; one that the dashboard made or edited stays. Answers what happened. */
export async function removeDefinition(
  parts: LocalParts,
  name: string,
): Promise<"deleted" | "kept" | "absent"> {
  return await parts.store.write("dashboard", async (tx) => {
    const context = relayContext(parts);
    const row = await findRelay(tx, context.environment.id, name);
    if (row === null) return "absent";
    if (row.originKind !== "file") return "kept";
    await deleteRelay(tx, context, name);
    return "deleted";
  });
}
