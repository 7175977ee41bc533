/**
 * The relays of every environment, ready to use: definitions parsed, secrets unsealed, verifiers prepared. They stay in memory and are
 * read again after every change by this process or another one. It never writes.
 */

import { type Json, writeCanonicalJson } from "../../base/json.ts";
import type { Sealer } from "../../platform/secret/seal.ts";
import { digestAddress } from "../../shop/people/person-erase.ts";
import type { Reader, Store } from "../../store/port.ts";
import { type BoundAction, bindAction } from "../action/registry.ts";
import type { ActionDefinition, Definition } from "./definition-shape.ts";
import { compileMap, type LiveReceiver, openReceiver } from "./live-receiver.ts";
import { RELAY, type RelayRow, receiverUrl, signingSecretContext } from "./relay.ts";
import { withScheme } from "./source.ts";
import { rejectsUnsigned } from "./unsigned-rule.ts";

export interface LiveAction extends BoundAction {
  /** A hash of the action's canonical JSON, so that the order of fields does not matter. */
  fingerprint: string;
}

export interface LiveRelay {
  id: string;
  /** The keys that the relay's events store for the relay and for its name. */
  key: number;
  nameKey: number;
  name: string;
  environmentId: number;
  appId: string;
  environmentName: string;
  /** Local development. */
  local: boolean;
  /** The saved definition. A follower's has the scheme of its source. */
  definition: Definition;
  /** Counts the saves of the definition. */
  version: number;
  actions: readonly LiveAction[];
  /** The list of actions as canonical JSON, and its fingerprint. */
  actionList: { text: string; fingerprint: string };
  /** True if an action sends something out. */
  sends: boolean;
  /** True if an unsigned event must not act, because the relay acts on people without the opt-in. */
  rejectsUnsigned: boolean;
  /** True if events wait: the relay is paused, or its environment is on hold. */
  waiting: boolean;
  /** True after the release of a hold. Until the waiting events have run, events of all relays run in the order of arrival. */
  releasing: boolean;
  /** The state that its events wait for. null: nothing, or the relay cannot be opened. */
  waitsFor: "paused" | "held" | "both" | null;
  receiver: LiveReceiver | null;
  signingSecret: string | null;
  /** The signing secret before the last rotation, which also signs calls until `until` (milliseconds since the epoch). */
  previousSigningSecret: { text: string; until: number } | null;
  /** The digest under which an erased address is stored. */
  digestAddress: (email: string) => Uint8Array;
}

export type ReceiverRelay = LiveRelay & { receiver: LiveReceiver };

export class Snapshot {
  readonly relays: readonly LiveRelay[];
  /** Relays that send and are not waiting. */
  readonly sendingCount: number;
  readonly hasSchedule: boolean;
  /** Relays of an environment whose hold was released, whether or not one of their events waits. */
  readonly releasing: readonly string[];
  readonly #byId = new Map<string, LiveRelay>();
  readonly #receivers = new Map<string, ReceiverRelay[]>();
  /** The followers of each source, by name. */
  readonly #followers = new Map<string, ReceiverRelay[]>();

  constructor(relays: readonly LiveRelay[]) {
    this.relays = relays;
    this.sendingCount = relays.filter(({ sends, waiting }) => sends && !waiting).length;
    this.releasing = relays.filter(({ releasing, waiting }) => releasing && !waiting).map(({ id }) => id);
    this.hasSchedule = relays.some(({ definition }) => definition.trigger.kind === "schedule");
    for (const relay of relays) {
      this.#byId.set(relay.id, relay);
      if (relay.receiver === null) continue;
      const { source } = relay.receiver;
      if (source === null) add(this.#receivers, `${relay.appId}/${relay.name}`, relay as ReceiverRelay);
      else add(this.#followers, source.id, relay as ReceiverRelay);
    }
    for (const followers of this.#followers.values())
      followers.sort((one, other) => (one.name < other.name ? -1 : 1));
  }

  findRelay(id: string): LiveRelay | null {
    return this.#byId.get(id) ?? null;
  }

  /** Lists relays of `before` that no longer wait, or no longer hold others back, or are deleted. Their waiting events are due. */
  listReleased(before: Snapshot): string[] {
    return before.relays.flatMap(({ id, waiting, releasing }) => {
      const now = this.findRelay(id);
      return now === null || (waiting && !now.waiting) || (releasing && !now.releasing) ? [id] : [];
    });
  }

  /** The receivers with this name and a URL, at most one for each environment. */
  receiversOf(appId: string, name: string): readonly ReceiverRelay[] {
    return this.#receivers.get(`${appId}/${name}`) ?? [];
  }

  /** The relays that follow a receiver, by name. */
  followersOf(sourceId: string): readonly ReceiverRelay[] {
    return this.#followers.get(sourceId) ?? NO_FOLLOWERS;
  }
}

const NO_FOLLOWERS: readonly ReceiverRelay[] = [];

function add(lists: Map<string, ReceiverRelay[]>, key: string, relay: ReceiverRelay): void {
  const list = lists.get(key);
  if (list === undefined) lists.set(key, [relay]);
  else list.push(relay);
}

/** The dependencies of opening a relay. */
export interface OpenDeps {
  sealer: Sealer;
  /** Public origin without a trailing slash. */
  baseUrl: () => string;
}

interface LiveRelayDeps extends OpenDeps {
  store: Store;
  /** Gets each relay that cannot be opened. */
  onUnreadable?: (relay: { id: string; name: string }, error: unknown) => void;
  /** Gets each relay that no longer waits, or is deleted, after a reload. Its waiting events are due. */
  onReleased?: (relayId: string) => void;
  /** Runs after a reload with schedules. `before`: the relays of the last notification. */
  onSchedules?: (snapshot: Snapshot, before: Snapshot | null) => void;
}

export class LiveRelays {
  readonly #deps: LiveRelayDeps;
  #snapshot: Snapshot | null = null;
  #notified: Snapshot | null = null;
  /** The row from which each relay was opened, by the relay's id. */
  #opened = new Map<string, OpenedRelay>();
  #loading: Promise<Snapshot> | null = null;
  #generation = 0;

  constructor(deps: LiveRelayDeps) {
    this.#deps = deps;
  }

  /** The relays as of the last change. */
  current(): Snapshot | Promise<Snapshot> {
    return this.#snapshot ?? this.#load();
  }

  /** The relays as of the last commit. null: a change is being read. */
  get cached(): Snapshot | null {
    return this.#snapshot;
  }

  /** Reloads. Call it after every committed change of a relay, a secret or a hold. */
  readonly invalidate = (): void => {
    this.#generation += 1;
    this.#snapshot = null;
    this.#loading = null;
    void this.#load().catch(() => undefined);
  };

  /** Opens only what changed, because opening takes a tenth of a millisecond and every change of any relay runs this. */
  #openAll(rows: readonly LiveRow[]): LiveRelay[] {
    const baseUrl = this.#deps.baseUrl();
    const before = this.#opened;
    this.#opened = new Map();
    const byName = new Map(rows.map((row) => [`${row.environmentId}/${row.name}`, row]));
    return rows.map((row) => {
      const source =
        row.sourceName === null ? null : (byName.get(`${row.environmentId}/${row.sourceName}`) ?? null);
      const known = before.get(row.id);
      const isKnown =
        known?.baseUrl === baseUrl && isSame(known.row, row) && isSameSource(known.source, source);
      if (!isKnown) return this.#open(row, source);
      this.#opened.set(row.id, known);
      return known.relay;
    });
  }

  /** Closes only a relay that cannot be opened: its events wait, other relays continue, and the next change tries it again. */
  #open(row: LiveRow, source: LiveRow | null): LiveRelay {
    try {
      const relay = openRelay({ ...row }, source, this.#deps);
      this.#opened.set(row.id, { row, source, baseUrl: this.#deps.baseUrl(), relay });
      return relay;
    } catch (error) {
      this.#deps.onUnreadable?.(row, error);
      return makeUnreadableRelay(row, source, this.#deps);
    }
  }

  #load(): Promise<Snapshot> {
    if (this.#loading !== null) return this.#loading;
    const generation = this.#generation;
    const loading = this.#deps.store.read(listLiveRows).then(
      (rows) => {
        const snapshot = new Snapshot(this.#openAll(rows));
        if (generation === this.#generation) {
          this.#snapshot = snapshot;
          this.#loading = null;
          this.#notify(snapshot);
        }
        return snapshot;
      },
      (error: unknown) => {
        if (generation === this.#generation) this.#loading = null;
        throw error;
      },
    );
    this.#loading = loading;
    return loading;
  }

  #notify(snapshot: Snapshot): void {
    const before = this.#notified;
    this.#notified = snapshot;
    const { onReleased, onSchedules } = this.#deps;
    if (before !== null) for (const id of snapshot.listReleased(before)) onReleased?.(id);
    if (snapshot.hasSchedule) onSchedules?.(snapshot, before);
  }
}

/** Binds the actions of a definition. Throws for a type that this version does not know. */
export function openActions(actions: readonly ActionDefinition[]): LiveAction[] {
  return actions.map((action) => {
    const bound = bindAction(action);
    if (bound === null) throw new Error(`This version does not know the action ${action.type}.`);
    return { ...bound, fingerprint: fingerprintOf(writeCanonicalJson(action)) };
  });
}

/** The list as an attempt records it. */
function listActions(actions: readonly unknown[]): LiveRelay["actionList"] {
  const text = writeCanonicalJson(actions as Json[]);
  return { text, fingerprint: fingerprintOf(text) };
}

/** 128 bits of SHA-256, 22 characters. */
function fingerprintOf(text: string): string {
  const digest = Bun.CryptoHasher.hash("sha256", text) as Buffer;
  return digest.subarray(0, 16).toString("base64url");
}

/** A relay with what it was opened from. */
interface OpenedRelay {
  row: LiveRow;
  /** The row of the receiver that it follows. */
  source: LiveRow | null;
  baseUrl: string;
  relay: LiveRelay;
}

/** `source`: the row of the receiver that it follows. Throws where it is missing. */
function openRelay(row: LiveRow, source: LiveRow | null, deps: OpenDeps): LiveRelay {
  const saved = RELAY.read(row).definition;
  if (row.sourceName !== null && source === null)
    throw new Error(`The relay ${row.sourceName}, which it follows, does not exist.`);
  const definition = source === null ? saved : withScheme(saved, RELAY.read({ ...source }).definition);
  const actions = openActions(definition.actions);
  const bars = rejectsUnsigned(definition);
  return {
    ...identifyRelay(row, deps),
    definition,
    actions,
    actionList: listActions(definition.actions),
    sends: actions.some(({ sends }) => sends),
    rejectsUnsigned: bars,
    waiting: row.state === "paused" || row.heldAt !== null,
    releasing: row.releasedThrough !== null,
    waitsFor: findWait(row),
    receiver: openReceiver(source ?? row, definition, bars, deps),
    signingSecret:
      row.signingSecret === null ? null : deps.sealer.unseal(row.signingSecret, signingSecretContext(row.id)),
    previousSigningSecret: openPreviousSigning(row, deps),
  };
}

function openPreviousSigning(row: LiveRow, { sealer }: OpenDeps): LiveRelay["previousSigningSecret"] {
  const { previousSigningSecret: sealed, previousSigningSecretUntil: until } = row;
  if (sealed === null || until === null) return null;
  return { text: sealer.unseal(sealed, signingSecretContext(row.id)), until };
}

function findWait({ state, heldAt }: LiveRow): LiveRelay["waitsFor"] {
  if (state !== "paused") return heldAt === null ? null : "held";
  return heldAt === null ? "paused" : "both";
}

/** Returns the identity of a relay, even if its definition cannot be read. */
function identifyRelay(
  { id, key, nameKey, name, environmentId, appId, version, environmentName }: LiveRow,
  deps: OpenDeps,
) {
  const digest = (email: string) => digestAddress(deps.sealer, email);
  return {
    id,
    key,
    nameKey,
    name,
    environmentId,
    appId,
    version,
    environmentName,
    local: environmentName === "local",
    digestAddress: digest,
  };
}

/** Makes a placeholder for a relay that cannot be read. */
function makeUnreadableRelay(row: LiveRow, source: LiveRow | null, deps: LiveRelayDeps): LiveRelay {
  const trigger: Definition["trigger"] = { kind: "data_change", collection: "", on: [] };
  return {
    ...identifyRelay(row, deps),
    definition: { name: row.name, trigger, actions: [] },
    actions: [],
    actionList: listActions([]),
    sends: false,
    rejectsUnsigned: true,
    waiting: true,
    releasing: false,
    waitsFor: null,
    receiver: {
      source: row.sourceName === null ? null : { id: source?.id ?? "", name: row.sourceName },
      url: receiverUrl(deps.baseUrl(), row.appId, row.name),
      verifier: null,
      closed: "unreadable",
      bodies: "json",
      map: compileMap({}),
      personKey: null,
      customer: null,
      when: null,
      gate: [],
      unsigned: false,
      overlap: null,
      secretMarks: { present: null, previous: null },
      handshake: null,
    },
    signingSecret: null,
    previousSigningSecret: null,
  };
}

/**
 * A relay's row with its environment's. Secrets are still sealed and the definition is still text, so that one unreadable relay does not
 * affect others.
 */
type LiveRow = Omit<RelayRow, "definition"> & {
  definition: string;
  key: number;
  nameKey: number;
  environmentName: string;
  appId: string;
  heldAt: number | null;
  releasedThrough: number | null;
  processorSecret: Uint8Array | null;
};

function isSameSource(one: LiveRow | null, other: LiveRow | null): boolean {
  return one === null || other === null ? one === other : isSame(one, other);
}

function isSame(one: LiveRow, other: LiveRow): boolean {
  return (Object.keys(one) as (keyof LiveRow)[]).every((name) => {
    const [was, is] = [one[name], other[name]];
    return was === is || (was instanceof Uint8Array && is instanceof Uint8Array && Bun.deepEquals(was, is));
  });
}

const LIVE_ROWS = `SELECT ${RELAY.columnsOf("relay")}, relay_key.key, relay_key.name_key AS nameKey, environment.name AS environmentName, environment.app_id AS appId,
       environment.held_at AS heldAt, environment.released_through AS releasedThrough, environment.processor_secret AS processorSecret
     FROM relay JOIN environment ON environment.id = relay.environment_id JOIN relay_key ON relay_key.relay_id = relay.id
     WHERE environment.deleted_at IS NULL`;

function listLiveRows(tx: Reader): Promise<LiveRow[]> {
  return tx.all<LiveRow>(`${LIVE_ROWS} ORDER BY relay.id`);
}

/** Opens a relay as the transaction has it. Returns null where there is none, or where it cannot be opened. */
export async function findLiveRelay(
  tx: Reader,
  environmentId: number,
  name: string,
  deps: OpenDeps,
): Promise<LiveRelay | null> {
  const sql = `${LIVE_ROWS} AND relay.environment_id = $environmentId AND relay.name = $name`;
  const find = (of: string): Promise<LiveRow | null> => tx.get<LiveRow>(sql, { environmentId, name: of });
  const row = await find(name);
  if (row === null) return null;
  const source = row.sourceName === null ? null : await find(row.sourceName);
  try {
    return openRelay(row, source, deps);
  } catch {
    return null;
  }
}
