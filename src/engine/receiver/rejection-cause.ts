/**
 * Why a refused call did not verify, looked into after it was answered, one call after another and bounded in number, bytes and work: a flood
 * of refused calls takes two hundredths of a core and no more, and its calls keep the plain cause. It changes no answer and counts nothing.
 * It is tried with the relay's own secret, the one before it, those of this name in the app's other environments, and those of the relays
 * beside it, which are opened for that alone and shown to nobody.
 */
import { type Clock, toIso } from "../../base/clock.ts";
import { MINUTE_MS } from "../../base/limit.ts";
import type { Log } from "../../base/log.ts";
import type { Sealer } from "../../platform/secret/seal.ts";
import type { LiveRelay } from "../../rules/relay/live-relay.ts";
import {
  processorSecretContext,
  type RelayRow,
  receiverSecretContext,
  relayTarget,
} from "../../rules/relay/relay.ts";
import type { ReceivedCall } from "../../rules/verify/contract.ts";
import type { HeaderList } from "../../rules/verify/found-signature.ts";
import type { SecretAtHand } from "../../rules/verify/rejected-request.ts";
import { type Difference, findDifference } from "../../rules/verify/signature-diagnosis.ts";
import { turnLoop } from "../../store/index-scan.ts";
import type { Reader, Store } from "../../store/port.ts";
import type { UnverifiedRejection } from "./rejection.ts";

const MAX_WAITING = 16;
const MAX_WAITING_BYTES = 1024 * 1024;
/** Work that may be done at once, and that comes back in a second. */
const MAX_WORK_US = 300_000;
const WORK_US_PER_SECOND = 20_000;
/** What one costs beside what it tries: opening secrets. */
const SURE_US = 500;

interface RejectedRequest {
  by: UnverifiedRejection;
  call: ReceivedCall;
  headers: HeaderList;
  /** When a call of this relay last verified here; null: never. */
  acceptedAt: number | null;
  /** Takes the whole cause, and whether it names what has to be otherwise, or at least since when; null: neither. */
  record(cause: string, names: "difference" | "since" | null): void;
}

interface CauseDeps {
  store: Store;
  clock: Clock;
  log: Log;
  sealer: Sealer;
}

export class CauseFinder {
  readonly #deps: CauseDeps;
  #waiting = 0;
  #waitingBytes = 0;
  #last: Promise<void> = Promise.resolve();
  #workUs = MAX_WORK_US;
  #countedAtMs: number;

  constructor(deps: CauseDeps) {
    this.#deps = deps;
    this.#countedAtMs = deps.clock.monotonicMs();
  }

  /** Whether another call of so many bytes may be looked into now. */
  hasRoom(bytes: number): boolean {
    const nowMs = this.#deps.clock.monotonicMs();
    const backUs = ((nowMs - this.#countedAtMs) / 1000) * WORK_US_PER_SECOND;
    this.#countedAtMs = nowMs;
    this.#workUs = Math.min(MAX_WORK_US, this.#workUs + backUs);
    return this.#workUs > 0 && this.#waiting < MAX_WAITING && this.#waitingBytes + bytes <= MAX_WAITING_BYTES;
  }

  /** Looks into it soon, behind its answer. */
  add(receipt: RejectedRequest): void {
    const bytes = receipt.call.body.byteLength;
    this.#waiting += 1;
    this.#waitingBytes += bytes;
    this.#last = this.#last.then(async () => {
      await turnLoop();
      await this.#diagnose(receipt);
      this.#waiting -= 1;
      this.#waitingBytes -= bytes;
    });
  }

  /** Resolves when every call that waits now was looked into. */
  settle(): Promise<void> {
    return this.#last;
  }

  async #diagnose({ by, call, headers, acceptedAt, record }: RejectedRequest): Promise<void> {
    const { store, sealer, log } = this.#deps;
    const { relay, cause, unmatched } = by;
    try {
      const { trigger } = relay.definition;
      if (trigger.kind !== "receiver") throw new Error("The relay receives nothing.");
      const secrets = await store.read((tx) => listSecretsAtHand(tx, sealer, relay));
      const refused = { verify: trigger.verify, call, headers, secrets };
      const difference = await findDifference(refused, turnLoop);
      this.#workUs -= SURE_US + difference.spentUs;
      const unsolved = unmatched && difference.changes === null;
      const changed = unsolved ? await store.read((tx) => findLastChanges(tx, relay)) : null;
      const history =
        changed === null
          ? ""
          : formatHistory(Math.max(acceptedAt ?? 0, changed.acceptedAt ?? 0), call.nowMs, changed);
      const names = difference.changes !== null ? "difference" : history === "" ? null : "since";
      record(`${cause}${formatDifference(difference, unmatched)}${history}`, names);
    } catch (error) {
      log.warn("the cause of a refused call could not be looked into", { relay: relay.name, error });
      record(cause, null);
    }
  }
}

const words = new Intl.ListFormat("en-GB", { type: "conjunction" });

/** What was found, to follow the plain cause; "" where nothing was. */
export function formatDifference(
  { changes, secondsOld, near, lacks, carriesProof }: Difference,
  unmatched: boolean,
): string {
  if (changes !== null && changes.length > 0) return `; it verifies with ${words.format(changes)}`;
  if (changes !== null && secondsOld !== null) {
    const off = `; in all else it verifies, so the sender's clock or this server's is off by ${Math.abs(secondsOld)} seconds`;
    return secondsOld > 0 ? `${off}, or it is a call of that long ago, late on its way or sent again` : off;
  }
  if (changes !== null) return "; in all else it verifies";
  if (lacks) {
    if (near.length === 0) return "";
    const names = near.map((name) => `\`${name}\``);
    return `; of the headers that came ${words.format(names)} ${near.length === 1 ? "is" : "are"} named most like it`;
  }
  return carriesProof || !unmatched ? "" : "; what came in its place does not have the form of a signature";
}

/** What is known of when it still verified. A question is asked where nothing was changed here since, and not of a stranger's call among good ones. */
function formatHistory(
  /** 0: never. */
  acceptedAt: number,
  nowMs: number,
  { definitionAt, secretAt }: { definitionAt: number | null; secretAt: number | null },
): string {
  if (acceptedAt === 0) return "; no call has verified here yet";
  const since = (at: number | null, what: string): string[] =>
    at !== null && at > acceptedAt ? [`${what} was changed here at ${toIso(at)}`] : [];
  const changes = [...since(secretAt, "the secret"), ...since(definitionAt, "the definition")];
  if (changes.length === 0 && nowMs - acceptedAt < MINUTE_MS)
    return `; another call verified at ${toIso(acceptedAt)}, less than a minute before`;
  const until = `; until ${toIso(acceptedAt)} calls verified`;
  return changes.length === 0
    ? `${until}: was the secret rotated at the sender?`
    : `${until}, and since then ${words.format(changes)}`;
}

/** Of relays with another name; an environment holds 20 unless its limit was raised. */
const MAX_OTHERS = 40;

type SecretRow = Pick<
  RelayRow,
  "id" | "environmentId" | "name" | "secretKind" | "secret" | "previousSecret"
> & {
  environmentName: string;
};

interface ProcessorRow {
  id: number;
  name: string;
  secret: Uint8Array | null;
}

type OfRelay = Pick<LiveRelay, "id" | "name" | "appId" | "environmentId" | "definition">;

/** The relay's own secret first. One that cannot be opened is left out. */
export async function listSecretsAtHand(tx: Reader, sealer: Sealer, relay: OfRelay): Promise<SecretAtHand[]> {
  const sql = `SELECT relay.id AS id, environment_id AS environmentId, relay.name AS name, secret_kind AS secretKind, secret,
      previous_secret AS previousSecret, environment.name AS environmentName
    FROM environment JOIN relay ON relay.environment_id = environment.id
    WHERE environment.app_id = $appId AND secret IS NOT NULL AND (relay.name = $name OR environment.id = $environmentId)
    ORDER BY relay.id = $id DESC, relay.name = $name DESC LIMIT $most`;
  const { appId, name, environmentId, id } = relay;
  const rows = await tx.all<SecretRow>(sql, { appId, name, environmentId, id, most: MAX_OTHERS });
  const processors = await tx.all<ProcessorRow>(
    "SELECT id, name, processor_secret AS secret FROM environment WHERE app_id = ?1 AND processor_secret IS NOT NULL",
    appId,
  );
  const { trigger } = relay.definition;
  const usesProcessor = trigger.kind === "receiver" && trigger.verify.scheme === "processor";
  const found = [
    ...rows.flatMap((row) => openRelaySecrets(sealer, relay, row)),
    ...processors.map((row): SecretAtHand | null => {
      const text = open(sealer, row.secret, processorSecretContext(row.id));
      const own = row.id === environmentId;
      const called = own
        ? usesProcessor
          ? null
          : "the processor secret of this environment"
        : `the processor secret of ${row.name}`;
      return text === null ? null : { text, isPublicKey: false, called };
    }),
  ].filter((one) => one !== null);
  return found.toSorted((one, other) => Number(one.called !== null) - Number(other.called !== null));
}

function openRelaySecrets(sealer: Sealer, relay: OfRelay, row: SecretRow): SecretAtHand[] {
  const isPublicKey = row.secretKind === "public_key";
  const what = isPublicKey ? "key" : "secret";
  const called =
    row.id === relay.id
      ? null
      : row.environmentId === relay.environmentId
        ? `the ${what} of the relay ${row.name}`
        : `the ${what} that ${row.environmentName} holds under this name`;
  const secrets = [
    { sealed: row.secret, called },
    ...(row.id === relay.id
      ? [{ sealed: row.previousSecret, called: `the ${what} before the present one` }]
      : []),
  ];
  return secrets.flatMap(({ sealed, called: name }) => {
    const text = open(sealer, sealed, receiverSecretContext(row.id));
    return text === null ? [] : [{ text, isPublicKey, called: name }];
  });
}

function open(sealer: Sealer, sealed: Uint8Array | null, context: string): string | null {
  if (sealed === null) return null;
  try {
    return sealer.unseal(sealed, context);
  } catch {
    return null;
  }
}

/** When this relay's definition, and the secret that it verifies with, were last changed here, and when a call last verified as far as it is written. */
async function findLastChanges(
  tx: Reader,
  { id, environmentId, name }: OfRelay,
): Promise<{ definitionAt: number | null; secretAt: number | null; acceptedAt: number | null }> {
  const sql = `SELECT max(at) AS definitionAt,
      (SELECT coalesce(relay.secret_set_at, environment.processor_secret_set_at) FROM relay
        JOIN environment ON environment.id = relay.environment_id WHERE relay.id = $id) AS secretAt,
      (SELECT accepted_at FROM relay WHERE id = $id) AS acceptedAt
    FROM audit WHERE environment_id = $environmentId AND target = $target AND event_id IS NULL AND action = 'relay.updated'`;
  const row = await tx.get<Awaited<ReturnType<typeof findLastChanges>>>(sql, {
    id,
    environmentId,
    target: relayTarget(name),
  });
  return row ?? { definitionAt: null, secretAt: null, acceptedAt: null };
}
