/**
 * Finds what a change of the catalog breaks in the relays that name the changed item. The answer of the change warns of a relay that no longer fits,
 * and the warning stays as the relay's problem until the relay or the catalog is fixed. The mapping of receipts and the key of a product name items
 * too, but they have no relay, so only the answer warns of them. A relay that never fitted gets no problem, because its save warned of it.
 */
import { type Static, Type } from "typebox";
import type { Warning } from "../../base/refusal.ts";
import { listOrphanKeyWarnings } from "../../shop/selling/product.ts";
import { listReceiptWarnings } from "../../shop/selling/receipt.ts";
import type { Reader, Writer } from "../../store/port.ts";
import type { Definition } from "./definition-shape.ts";
import type { LiveRelay } from "./live-relay.ts";
import { findRelay, RELAY } from "./relay.ts";
import { type Edited, listMisfitWarnings, updateMisfitProblem } from "./relay-problem.ts";
import { type CatalogLookup, makeCatalogLookup } from "./relay-reference.ts";

interface TrackedEdit<Result> {
  result: Result;
  /** The problems that the change caused: first what belongs to no relay, then each relay's by its name (`relays.checkout.actions.0.product`). */
  warnings: Warning[];
}

/**
 * Makes the change of the item called `name` and rechecks the relays that name it. `access:<slug>` names one slug; null means every
 * access slug.
 */
export async function trackCatalogEdit<Result>(
  tx: Writer,
  edited: Edited,
  name: string | null,
  change: () => Promise<Result>,
): Promise<TrackedEdit<Result>> {
  const { environmentId } = edited;
  const before = makeCatalogLookup(tx, environmentId);
  const relays: { definition: Definition; misfits: Misfits }[] = [];
  const naming = await listRelaysNaming(tx, environmentId, name);
  for (const { definition } of naming.relays) {
    relays.push({ definition, misfits: toMisfits(await listMisfitWarnings(before, definition)) });
  }
  const idle = toMisfits(await listOrphanKeyWarnings(tx, environmentId, name));
  const result = await change();
  const after = makeCatalogLookup(tx, environmentId);
  const reported = name === null ? [] : await listReceiptWarnings(tx, environmentId, name);
  reported.push(
    ...(await listOrphanKeyWarnings(tx, environmentId, name)).filter(
      (warning) => !idle.has(warningKey(warning)),
    ),
  );
  const warnings: Warning[] = [];
  for (const { definition, misfits } of relays) {
    const { broken } = await recheckRelay(tx, edited, after, definition, misfits);
    warnings.push(...broken.map((warning) => prefixWarning(definition.name, warning)));
  }
  reported.push(...limitWarnings(warnings));
  if (naming.more > 0)
    reported.push(makeUncheckedWarning(naming.more, `more relays use what was changed and ${NOT_CHECKED}`));
  return { result, warnings: reported };
}

const NAMED = RELAY.pick("definition");
/** The most relays checked during a change, because checking blocks the event loop. The answer says how many more there are. */
const MAX_RELAYS = 25;
/** The most warnings of relays in one answer, which says how many more there are. */
const MAX_WARNINGS = 50;

const NOT_CHECKED = "were not checked: save each of them to see its warnings";

function limitWarnings(warnings: readonly Warning[]): Warning[] {
  const reported = warnings.slice(0, MAX_WARNINGS);
  const more = warnings.length - reported.length;
  const what = "more warnings of this change exist: after the change, the problems of the relays show them";
  return more > 0 ? [...reported, makeUncheckedWarning(more, what)] : reported;
}

/** The text before an access slug in a definition. */
const ANY_ACCESS = JSON.stringify("access:").slice(0, -1);

/** Selects relays whose definitions contain the name, and perhaps others. */
const NAMING = "WHERE environment_id = $environmentId AND instr(definition, $text) > 0";

async function listRelaysNaming(tx: Reader, environmentId: number, name: string | null) {
  const named = { environmentId, text: name === null ? ANY_ACCESS : JSON.stringify(name) };
  const rest = `${NAMING} AND json_valid(definition) ORDER BY name LIMIT ${MAX_RELAYS}`;
  const relays = await NAMED.all(tx, rest, named);
  if (relays.length < MAX_RELAYS) return { relays, more: 0 };
  const all = await tx.get<{ count: number }>(`SELECT count(*) AS count FROM relay ${NAMING}`, named);
  return { relays, more: (all?.count ?? 0) - relays.length };
}

function makeUncheckedWarning(count: number, what: string): Warning {
  return { code: "relays_not_told", field: "relays", message: `${count} ${what}.` };
}

const ALL_RELAYS = "WHERE environment_id = ?1 AND json_valid(definition) ORDER BY name";

/** The misfits of relays before several items change at once. `more`: the number of relays that were not checked. */
interface MisfitsBefore {
  misfits: ReadonlyMap<string, Misfits>;
  more: number;
}

/** Checks the first relays by name, except those that are saved with the change. */
export async function readMisfits(
  tx: Reader,
  environmentId: number,
  saved: ReadonlySet<string>,
): Promise<MisfitsBefore> {
  const lookup = makeCatalogLookup(tx, environmentId);
  const all = await tx.all<{ name: string }>(`SELECT name FROM relay ${ALL_RELAYS}`, environmentId);
  const names = all.map(({ name }) => name).filter((name) => !saved.has(name));
  const misfits = new Map<string, Misfits>();
  for (const name of names.slice(0, MAX_RELAYS)) {
    const row = await findRelay(tx, environmentId, name);
    if (row !== null) misfits.set(name, toMisfits(await listMisfitWarnings(lookup, row.definition)));
  }
  return { misfits, more: Math.max(0, names.length - MAX_RELAYS) };
}

/**
 * Rechecks the relays that `readMisfits` checked and that still exist. Returns what the changes broke and how many relays were not
 * checked.
 */
export async function recheckMisfits(tx: Writer, edited: Edited, before: MisfitsBefore): Promise<Warning[]> {
  const lookup = makeCatalogLookup(tx, edited.environmentId);
  const warnings: Warning[] = [];
  for (const [name, misfits] of before.misfits) {
    const row = await findRelay(tx, edited.environmentId, name);
    if (row === null) continue;
    const { broken } = await recheckRelay(tx, edited, lookup, row.definition, misfits);
    warnings.push(...broken.map((warning) => prefixWarning(name, warning)));
  }
  const reported = limitWarnings(warnings);
  if (before.more > 0)
    reported.push(
      makeUncheckedWarning(
        before.more,
        `more relays may be affected by this change of the catalog and ${NOT_CHECKED}`,
      ),
    );
  return reported;
}

/** A relay's misfits, for comparison after a change. */
export type Misfits = ReadonlySet<string>;

function toMisfits(warnings: readonly Warning[]): Misfits {
  return new Set(warnings.map(warningKey));
}

function warningKey({ code, field }: Warning): string {
  return `${code} ${field}`;
}

/**
 * Rechecks one relay, updates its problem, and returns what the change broke. `before` is null where nothing is known; then nothing
 * counts as broken.
 */
export async function recheckRelay(
  tx: Writer,
  edited: Edited,
  lookup: CatalogLookup,
  definition: Definition,
  before: Misfits | null,
): Promise<{ broken: Warning[]; after: Misfits }> {
  const found = await listMisfitWarnings(lookup, definition);
  const broken = before === null ? [] : found.filter((warning) => !before.has(warningKey(warning)));
  await updateMisfitProblem(tx, edited, definition.name, found, broken.length > 0);
  return { broken, after: toMisfits(found) };
}

function prefixWarning(name: string, { code, field, message }: Warning): Warning {
  return { code, field: `relays.${name}.${field}`, message: `The relay ${name}: ${message}` };
}

export const catalogUse = Type.Object({
  /** A product's or plan's name, or `access:<slug>`. */
  name: Type.String(),
  relay: Type.String(),
  /** The action's type. */
  action: Type.String(),
});
export type CatalogUse = Static<typeof catalogUse>;

/** The fields of actions that name an item of the catalog. */
const FIELDS = ["product", "plan", "entitlement"] as const;

/** Lists each use once, by the relay's name. */
export function listCatalogUses(relays: readonly Pick<LiveRelay, "name" | "definition">[]): CatalogUse[] {
  const uses = new Map<string, CatalogUse>();
  for (const { name: relay, definition } of relays) {
    for (const action of definition.actions) {
      for (const field of FIELDS) {
        const name = action[field];
        if (typeof name !== "string") continue;
        uses.set(`${relay} ${action.type} ${name}`, { name, relay, action: action.type });
      }
    }
  }
  return [...uses.values()].sort((one, other) => one.relay.localeCompare(other.relay));
}
