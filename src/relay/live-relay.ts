/**
 * The relays as they are now, ready to use: definitions parsed, secrets unsealed, verifiers prepared. Kept in memory, read again after
 * every change by this process or another. It never writes.
 */
import type { ActionType } from "../action/contract.ts";
import { findAction } from "../action/registry.ts";
import { parseJson } from "../ground/json.ts";
import { isKeyText } from "../ground/key-text.ts";
import type { Sealer } from "../secret/seal.ts";
import type { Reader, Store } from "../store/port.ts";
import type { Verifier } from "../verify/contract.ts";
import { findScheme, RENAMED_SCHEME } from "../verify/registry.ts";
import type { Definition } from "./definition.ts";
import { type CompiledMap, compileMap } from "./event-map.ts";
import { overlapVerifiers } from "./overlap-verifier.ts";
import {
  processorSecretContext,
  receiverSecretContext,
  receiverUrl,
  signingSecretContext,
} from "./relay-row.ts";
import { actsUnsigned, arrivesUnsigned } from "./unsigned-rule.ts";

/** Why a receiver verifies nothing at all. */
export type Closed = "scheme_renamed" | "relay_unsigned_event" | "relay_key_as_secret" | "no_secret";

export interface LiveReceiver {
  /** The receiver URL, byte for byte as the relay's page shows it. */
  url: string;
  /** null while closed. */
  verifier: Verifier | null;
  closed: Closed | null;
  map: CompiledMap;
  when: Readonly<Record<string, string>> | null;
  /** Whether the sender does not sign the event itself. */
  unsigned: boolean;
}

export interface LiveAction {
  type: ActionType;
  action: unknown;
  target: string;
}

export interface LiveRelay {
  id: string;
  name: string;
  environmentId: number;
  appId: string;
  /** Local development. */
  local: boolean;
  definition: Definition;
  actions: readonly LiveAction[];
  /** Whether any action leaves the house. */
  sends: boolean;
  /** Whether an unsigned event may not act: it has acting actions and no opt-in. */
  barsUnsigned: boolean;
  /** Paused, or its environment is on hold: events wait. */
  waiting: boolean;
  receiver: LiveReceiver | null;
  signingSecret: string | null;
}

export type ReceiverRelay = LiveRelay & { receiver: LiveReceiver };

export class Snapshot {
  readonly relays: readonly LiveRelay[];
  /** Relays that send and are not waiting. */
  readonly sendingCount: number;
  readonly #byId = new Map<string, LiveRelay>();
  readonly #receivers = new Map<string, ReceiverRelay[]>();

  constructor(relays: readonly LiveRelay[]) {
    this.relays = relays;
    this.sendingCount = relays.filter(({ sends, waiting }) => sends && !waiting).length;
    for (const relay of relays) {
      this.#byId.set(relay.id, relay);
      if (relay.receiver === null) continue;
      const path = `${relay.appId}/${relay.name}`;
      const there = this.#receivers.get(path);
      if (there === undefined) this.#receivers.set(path, [relay as ReceiverRelay]);
      else there.push(relay as ReceiverRelay);
    }
  }

  findRelay(id: string): LiveRelay | null {
    return this.#byId.get(id) ?? null;
  }

  /** The receivers of this name, one an environment at most. */
  receiversOf(appId: string, name: string): readonly ReceiverRelay[] {
    return this.#receivers.get(`${appId}/${name}`) ?? [];
  }
}

interface LiveRow {
  id: string;
  name: string;
  environmentId: number;
  environmentName: string;
  appId: string;
  heldAt: number | null;
  definition: string;
  state: "active" | "paused";
  secretKind: string;
  secret: Uint8Array | null;
  previousSecret: Uint8Array | null;
  previousSecretUntil: number | null;
  processorSecret: Uint8Array | null;
  signingSecret: Uint8Array | null;
}

export interface LiveRelayRooms {
  store: Store;
  sealer: Sealer;
  /** Public origin without a trailing slash. */
  baseUrl: () => string;
  /** Told after every reload. */
  onReload?: (snapshot: Snapshot) => void;
}

export class LiveRelays {
  readonly #rooms: LiveRelayRooms;
  #snapshot: Snapshot | null = null;
  #loading: Promise<Snapshot> | null = null;
  #generation = 0;

  constructor(rooms: LiveRelayRooms) {
    this.#rooms = rooms;
  }

  /** The relays as of the last change. */
  current(): Snapshot | Promise<Snapshot> {
    return this.#snapshot ?? this.#load();
  }

  /** Call after every committed change of a relay, a secret or a hold. */
  invalidate(): void {
    this.#generation += 1;
    this.#snapshot = null;
    this.#loading = null;
    void this.#load().catch(() => undefined);
  }

  #load(): Promise<Snapshot> {
    if (this.#loading !== null) return this.#loading;
    const generation = this.#generation;
    const loading = this.#rooms.store.read(listLiveRows).then(
      (rows) => {
        const snapshot = new Snapshot(rows.map((row) => openRelay(row, this.#rooms)));
        if (generation === this.#generation) {
          this.#snapshot = snapshot;
          this.#loading = null;
          this.#rooms.onReload?.(snapshot);
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
}

function listLiveRows(tx: Reader): Promise<LiveRow[]> {
  return tx.all<LiveRow>(
    `SELECT relay.id, relay.name, relay.environment_id AS environmentId, environment.name AS environmentName, environment.app_id AS appId,
       environment.held_at AS heldAt, relay.definition, relay.state, relay.secret_kind AS secretKind, relay.secret,
       relay.previous_secret AS previousSecret, relay.previous_secret_until AS previousSecretUntil,
       environment.processor_secret AS processorSecret, relay.signing_secret AS signingSecret
     FROM relay JOIN environment ON environment.id = relay.environment_id ORDER BY relay.id`,
  );
}

function openRelay(row: LiveRow, rooms: LiveRelayRooms): LiveRelay {
  const definition = parseJson(row.definition) as unknown as Definition;
  const actions = definition.actions.flatMap((action): LiveAction[] => {
    const type = findAction(action.type);
    return type === null ? [] : [{ type, action, target: type.target(action as never) }];
  });
  const trigger = definition.trigger;
  const trusted = trigger.kind === "receiver" && trigger.trustUnsignedEvents === true;
  const barsUnsigned = actsUnsigned(definition) && !trusted;
  return {
    id: row.id,
    name: row.name,
    environmentId: row.environmentId,
    appId: row.appId,
    local: row.environmentName === "local",
    definition,
    actions,
    sends: actions.some(({ type }) => type.sends),
    barsUnsigned,
    waiting: row.state === "paused" || row.heldAt !== null,
    receiver: openReceiver(row, definition, barsUnsigned, rooms),
    signingSecret:
      row.signingSecret === null
        ? null
        : rooms.sealer.unseal(row.signingSecret, signingSecretContext(row.id)),
  };
}

function openReceiver(
  row: LiveRow,
  definition: Definition,
  barsUnsigned: boolean,
  rooms: LiveRelayRooms,
): LiveReceiver | null {
  const trigger = definition.trigger;
  if (trigger.kind !== "receiver") return null;
  const renamed = (trigger.verify as { scheme: string }).scheme === RENAMED_SCHEME;
  const unsigned = !renamed && arrivesUnsigned(trigger);
  const opened: Closed | Verifier = renamed
    ? "scheme_renamed"
    : unsigned && barsUnsigned
      ? "relay_unsigned_event"
      : openVerifier(row, trigger.verify, rooms.sealer);
  return {
    url: receiverUrl(rooms.baseUrl(), row.appId, row.name),
    verifier: typeof opened === "string" ? null : opened,
    closed: typeof opened === "string" ? opened : null,
    map: compileMap(trigger.map),
    when: trigger.when ?? null,
    unsigned,
  };
}

function openVerifier(row: LiveRow, verify: { scheme: string }, sealer: Sealer): Closed | Verifier {
  const scheme = findScheme(verify.scheme);
  if (scheme === null) return "no_secret";
  const need = scheme.secretNeed(verify as never);
  if (need === "processor") {
    if (row.processorSecret === null) return "no_secret";
    return scheme.prepare(
      verify as never,
      sealer.unseal(row.processorSecret, processorSecretContext(row.environmentId)),
    );
  }
  if (row.secret === null) return "no_secret";
  if (need === "public_key" && row.secretKind !== "public_key") return "no_secret";
  const secret = sealer.unseal(row.secret, receiverSecretContext(row.id));
  if (need === "shared" && (row.secretKind === "public_key" || isKeyText(secret)))
    return "relay_key_as_secret";
  const verifier = scheme.prepare(verify as never, secret);
  if (row.previousSecret === null || row.previousSecretUntil === null) return verifier;
  const previous = sealer.unseal(row.previousSecret, receiverSecretContext(row.id));
  if (need === "shared" && isKeyText(previous)) return verifier;
  return overlapVerifiers(verifier, scheme.prepare(verify as never, previous), row.previousSecretUntil);
}
