/**
 * The space of a relay's customer ids: ids of one provider's account share one. It is the name of a receiver relay: of the relay itself, of the
 * relay that it follows, or of another one that its definition names. Source: sources, "Customers by the provider's ID".
 */
import { writeJson } from "../../base/json.ts";
import { Refusal, type Warning } from "../../base/refusal.ts";
import { findNearestName } from "../../base/text.ts";
import { hasCustomers } from "../../shop/people/person-customer.ts";
import type { Reader } from "../../store/port.ts";
import type { Definition } from "./definition-shape.ts";
import { findRelay, listRelayRows, RELAY } from "./relay.ts";
import { isSource, sourceNameOf } from "./source.ts";

export const SPACE_FIELD = "trigger.customer.space";
const NAMING = RELAY.pick("name", "definition");

/** Returns the space of a relay's customer ids. A follower's definition has the scheme of its source, or names the source. */
export function spaceOf({ name, trigger }: Pick<Definition, "name" | "trigger">): string {
  const named = trigger.kind === "receiver" ? trigger.customer?.space : undefined;
  return named ?? sourceNameOf({ trigger }) ?? name;
}

/** Returns the space that the definition names and that is not its own; null: it names none. */
export function namedSpaceOf(definition: Definition): string | null {
  const { trigger } = definition;
  const space = trigger.kind === "receiver" ? (trigger.customer?.space ?? null) : null;
  return space === definition.name && isSource(definition) ? null : space;
}

/** Throws `relay_missing` where the definition names a space that is no receiver's own and has no customer ids. */
export async function requireSpace(tx: Reader, environmentId: number, definition: Definition): Promise<void> {
  const space = namedSpaceOf(definition);
  if (space === null) return;
  const fault = await findSpaceFault(tx, environmentId, space);
  if (fault !== null) throw new Refusal("relay_missing", `\`${SPACE_FIELD}\`: ${fault}`);
}

/** Explains why the environment has no such space, and what to write; null: it has. Ids of a deleted relay keep their space. */
export async function findSpaceFault(
  tx: Reader,
  environmentId: number,
  space: string,
): Promise<string | null> {
  const relay = await findRelay(tx, environmentId, space);
  const fault = relay === null ? null : explainSpace(relay.definition);
  if (relay !== null && fault === null) return null;
  if (await hasCustomers(tx, environmentId, space)) return null;
  if (fault !== null) return fault;
  const names = (await listRelayRows(tx, environmentId))
    .filter((row) => explainSpace(row.definition) === null)
    .map(({ name }) => name);
  const near = findNearestName(space, names);
  const todo =
    near === null
      ? "Create that receiver first"
      : `Did you mean ${near}? Otherwise create that receiver first`;
  return `there is no space ${space} in this environment, because a space is the name of a receiver relay. ${todo}.`;
}

/**
 * Warns after a receiver was deleted or got another space, if other relays name its space and no customer id keeps it: no relay then writes an id
 * there.
 */
export async function warnLostSpace(tx: Reader, environmentId: number, space: string): Promise<Warning[]> {
  if (await hasCustomers(tx, environmentId, space)) return [];
  // An environment can have a thousand relays, so only definitions with this text are read.
  const rest =
    "WHERE environment_id = $environmentId AND name <> $space AND instr(definition, $named) > 0 ORDER BY name";
  const rows = await NAMING.all(tx, rest, { environmentId, space, named: `"space":${writeJson(space)}` });
  const relays = rows.filter((row) => namedSpaceOf(row.definition) === space).map(({ name }) => name);
  if (relays.length === 0) return [];
  const [verb, subjects] = relays.length === 1 ? ["names", "that relay"] : ["name", "those relays"];
  const message = `${relays.join(", ")} ${verb} the space ${space}, which no receiver has now, so events that need a customer ID wait with customer_unknown. Change ${SPACE_FIELD} of ${subjects}, or create a receiver ${space} with its own space again.`;
  return [{ code: "reference_missing", field: SPACE_FIELD, message }];
}

/** Explains why no other relay can use the name of this one as a space; null: it can. */
export function explainSpace(definition: Definition): string | null {
  const { name, trigger } = definition;
  if (trigger.kind !== "receiver")
    return `${name} starts by a ${trigger.kind}, so it has no customers. Name a receiver relay.`;
  const source = sourceNameOf(definition);
  if (source !== null) return `${name} follows ${source}, so it shares that relay's space. Write ${source}.`;
  const space = spaceOf(definition);
  if (space === name) return null;
  return `the customer ids of ${name} are in the space ${space}. Write ${space}.`;
}
