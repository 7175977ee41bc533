/**
 * Lists what problems, alerts, alert mail and relay doctor say before the message of an open trouble, in sentences.
 */
import type { Reader } from "../../store/port.ts";
import { findChangeAfterProblem } from "./newer-change.ts";
import { findRecentChange, type Trouble } from "./recent-change.ts";
import { formatMissing, listMissing, makeCatalogLookup } from "./relay-reference.ts";
import { TroubleRows } from "./trouble-rows.ts";

/** The most troubles of one list that are looked into. */
const MAX_HINTED = 20;

/** Lists the hints of several open troubles. Later ones of a long list get none. */
export async function listHints(
  tx: Reader,
  environmentId: number,
  troubles: readonly Trouble[],
): Promise<string[][]> {
  const rows = new TroubleRows(environmentId);
  const known = new Map<string, string[]>();
  const hints: string[][] = [];
  for (const trouble of troubles) {
    const key = `${trouble.code} ${trouble.target}`;
    const found = known.get(key) ?? (known.size < MAX_HINTED ? await findHints(tx, rows, trouble) : []);
    known.set(key, found);
    hints.push(found);
  }
  return hints;
}

/**
 * Finds what every command and mail says before the message of an open trouble: a change after its last
 * failure, or else the change before it and the names that were probably meant.
 */
export async function findHints(tx: Reader, rows: TroubleRows, trouble: Trouble): Promise<string[]> {
  const { code, target } = trouble;
  const { environmentId } = rows;
  const relay = code === "relay_failed" ? await rows.findRelay(tx, target) : null;
  const missing =
    relay === null ? [] : await listMissing(makeCatalogLookup(tx, environmentId), relay.definition);
  const lacking = missing.filter(({ there }) => !there);
  // While an item is missing, the cause exists, whatever was changed.
  const newer =
    lacking.length > 0 ? null : await findChangeAfterProblem(tx, rows, { code, target, seenAt: 0 });
  if (newer !== null) return [`The cause may no longer exist. ${newer.message}`];
  const change = await findRecentChange(tx, rows, trouble);
  const changed = change === null ? [] : [`${change.message} ${change.todo}`];
  return [...changed, ...lacking.filter(({ near }) => near !== null).map((thing) => formatMissing(thing))];
}
