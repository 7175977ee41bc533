/**
 * A relay's versions. Each save's audit row has the definition and the one before it, and an earlier version can be saved again. A relay
 * that was deleted and created again under the same name has only its own versions.
 */
import { type Static, Type } from "typebox";
import { toIso } from "../../base/clock.ts";
import { isJsonObject, type Json } from "../../base/json.ts";
import { listDifferences } from "../../base/json-diff.ts";
import { type Page, type PageRequest, readCursor } from "../../base/page.ts";
import { Refusal } from "../../base/refusal.ts";
import { json, oneOf, orNull, time } from "../../base/schema.ts";
import { listChangesOf } from "../../platform/audit/audit.ts";
import { yieldToEventLoop } from "../../store/index-scan.ts";
import type { Reader, Store } from "../../store/port.ts";
import { relayTarget, requireRelay } from "./relay.ts";

const SAVES = ["relay.created", "relay.updated"] as const;
/** The most fields that a version lists as changed. */
const MAX_CHANGED = 20;
const STEP = 20;

export const relayVersion = Type.Object({
  /** The id of its row in the audit. */
  id: Type.String(),
  version: Type.Integer(),
  at: time,
  /** The actor in the audit's form: `owner:<email>`, `key:<id>`, `command line`. */
  actor: Type.String(),
  /** A person's address or a key's name. null: the actor is neither, or is deleted. */
  actorName: orNull(Type.String()),
  origin: oneOf(["file", "dashboard"]),
  /** The environment that it was promoted from. */
  promotedFrom: Type.Optional(Type.String()),
  /** The git commit of the folder that a sync brought it from. */
  commit: Type.Optional(Type.String()),
  /** The version whose definition was saved again. */
  restores: Type.Optional(Type.Integer()),
  definition: json,
  /** The definition of the version before. null: this one created the relay. */
  before: orNull(json),
  /** The first 20 fields in which it differs from the version before. */
  changed: Type.Array(Type.String()),
});
export type RelayVersion = Static<typeof relayVersion>;

/** Lists a page of the relay's versions, newest first. Throws `not_found`. */
export async function listVersions(
  tx: Reader,
  environmentId: number,
  name: string,
  request: PageRequest,
): Promise<Page<RelayVersion>> {
  const { createdAt } = await requireRelay(tx, environmentId, name);
  const saves = { target: relayTarget(name), actions: SAVES, sinceMs: createdAt };
  return await listChangesOf(
    tx,
    environmentId,
    saves,
    request,
    ({ id, at, actor, actorName, before, after }) => {
      const [was, is] = [savedOf(before), savedOf(after)];
      const differences = before === null ? [] : listDifferences(was.definition, is.definition);
      return {
        id,
        version: Number(is.version),
        at: toIso(at),
        actor,
        actorName,
        origin: is.origin === "file" ? "file" : "dashboard",
        ...(typeof is.promotedFrom === "string" ? { promotedFrom: is.promotedFrom } : {}),
        ...(typeof is.commit === "string" ? { commit: is.commit } : {}),
        ...(is.restores === null ? {} : { restores: Number(is.restores) }),
        definition: is.definition,
        before: before === null ? null : was.definition,
        changed: differences.slice(0, MAX_CHANGED).map(({ field }) => field),
      };
    },
  );
}

/** Reads what the audit says of one save. */
function savedOf(
  side: Json,
): Record<"version" | "origin" | "promotedFrom" | "commit" | "restores" | "definition", Json> {
  const {
    version = null,
    origin = null,
    promotedFrom = null,
    commit = null,
    restores = null,
    definition = null,
  } = isJsonObject(side) ? side : {};
  return { version, origin, promotedFrom, commit, restores, definition };
}

/** Returns the saved definition of one version. Throws `not_found`. */
export async function readVersion(
  store: Store,
  environmentId: number,
  name: string,
  version: number,
): Promise<Json> {
  let after: string | null = null;
  do {
    const page: Page<RelayVersion> = await store.read((tx) =>
      listVersions(tx, environmentId, name, { limit: STEP, after }),
    );
    const found = page.items.find((one) => one.version === version);
    if (found !== undefined) return found.definition as Json;
    after = page.next === null ? null : readCursor(page.next);
    await yieldToEventLoop();
  } while (after !== null);
  throw new Refusal(
    "not_found",
    `The relay ${name} has no version ${version}: its history lists the existing versions.`,
  );
}
