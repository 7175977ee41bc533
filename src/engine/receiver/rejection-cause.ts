/**
 * Finds why a request did not verify, after the request has its answer. It takes one request after another, within limits of number, bytes
 * and work. A flood of rejected requests costs two hundredths of a core, and its requests keep the plain cause.
 */
import { type Clock, toIso } from "../../base/clock.ts";
import { MINUTE_MS } from "../../base/limit.ts";
import type { Log } from "../../base/log.ts";
import { joinWords } from "../../base/text.ts";
import type { Sealer } from "../../platform/secret/seal.ts";
import { listKnownSecrets } from "../../rules/relay/known-secret.ts";
import type { LiveRelay } from "../../rules/relay/live-relay.ts";
import { relayTarget } from "../../rules/relay/relay.ts";
import type { ReceivedRequest } from "../../rules/verify/contract.ts";
import type { HeaderList } from "../../rules/verify/signature-candidate.ts";
import { diagnoseSignature, formatDiagnosis } from "../../rules/verify/signature-diagnosis.ts";
import { yieldToEventLoop } from "../../store/index-scan.ts";
import type { Reader, Store } from "../../store/port.ts";
import type { UnverifiedRejection } from "./rejection.ts";

/** The most pieces of work that wait: a request has up to two, the reading of its event id and its diagnosis. */
const MAX_WAITING = 32;
const MAX_WAITING_BYTES = 1024 * 1024;
/** The work that can be spent at once, and the work that each second adds. */
const MAX_WORK_US = 300_000;
const WORK_US_PER_SECOND = 20_000;
/** The fixed cost of one request: opening the secrets. */
const OPENING_US = 500;

interface RejectedRequest {
  by: UnverifiedRejection;
  received: ReceivedRequest;
  headers: HeaderList;
  /** The time when a request of this relay last verified here; null for never. */
  acceptedAt: number | null;
  /** Gets the complete cause. `names` says whether the cause names the difference, or since when requests fail; null for neither. */
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

  /** Reports whether another request of this size can be diagnosed now. */
  hasRoom(bytes: number): boolean {
    const nowMs = this.#deps.clock.monotonicMs();
    const backUs = ((nowMs - this.#countedAtMs) / 1000) * WORK_US_PER_SECOND;
    this.#countedAtMs = nowMs;
    this.#workUs = Math.min(MAX_WORK_US, this.#workUs + backUs);
    return this.#workUs > 0 && this.#waiting < MAX_WAITING && this.#waitingBytes + bytes <= MAX_WAITING_BYTES;
  }

  /** Diagnoses the request soon, after its answer. */
  add(receipt: RejectedRequest): void {
    this.#enqueue(receipt.received.body.byteLength, () => this.#diagnose(receipt));
  }

  /** Reads the event id of a rejected request soon, after its answer, in a separate turn of the event loop. `done` runs afterwards, also where it could not be read. */
  addIdentification(bytes: number, identify: () => void, done?: () => void): void {
    this.#enqueue(bytes, async () => {
      this.#identify(identify);
      done?.();
    });
  }

  #enqueue(bytes: number, work: () => Promise<void>): void {
    this.#waiting += 1;
    this.#waitingBytes += bytes;
    this.#last = this.#last.then(async () => {
      await yieldToEventLoop();
      await work();
      this.#waiting -= 1;
      this.#waitingBytes -= bytes;
    });
  }

  /** Resolves when all waiting requests are diagnosed. */
  whenIdle(): Promise<void> {
    return this.#last;
  }

  /** Charges the work of reading an event id, which parses the body. */
  #identify(identify: () => void): void {
    const { clock, log } = this.#deps;
    const fromMs = clock.monotonicMs();
    try {
      identify();
    } catch (error) {
      log.warn("the event id of a rejected request could not be read", { error });
    }
    this.#workUs -= (clock.monotonicMs() - fromMs) * 1_000;
  }

  async #diagnose({ by, received, headers, acceptedAt, record }: RejectedRequest): Promise<void> {
    const { store, sealer, log } = this.#deps;
    const { relay, cause, unmatched } = by;
    try {
      const { trigger } = relay.definition;
      if (trigger.kind !== "receiver") throw new Error("The relay receives nothing.");
      const secrets = await store.read((tx) => listKnownSecrets(tx, sealer, relay));
      const rejected = { verify: trigger.verify, received, headers, secrets };
      const diagnosis = await diagnoseSignature(rejected, yieldToEventLoop);
      this.#workUs -= OPENING_US + diagnosis.spentUs;
      const text = `${cause}${formatDiagnosis(diagnosis, unmatched)}`;
      if (diagnosis.changes !== null) {
        record(text, "difference");
        return;
      }
      if (!unmatched) {
        record(text, null);
        return;
      }
      const last = await store.read((tx) => findLastChanges(tx, relay));
      const since = formatHistory(Math.max(acceptedAt ?? 0, last.acceptedAt ?? 0), received.nowMs, last);
      record(`${text}${since}`, "since");
    } catch (error) {
      log.warn("the cause of a rejected request could not be examined", { relay: relay.name, error });
      record(cause, null);
    }
  }
}

/** Formats when requests last verified. Names a rotation if nothing was changed here, but not for a single bad request among good ones. */
function formatHistory(
  /** The time when a request last verified; 0 for never. */
  acceptedAt: number,
  nowMs: number,
  { definitionAt, secretAt }: { definitionAt: number | null; secretAt: number | null },
): string {
  if (acceptedAt === 0) return ". No request has verified here yet";
  const since = (at: number | null, what: string): string[] =>
    at !== null && at > acceptedAt ? [`${what} was changed here at ${toIso(at)}`] : [];
  const changes = [...since(secretAt, "the secret"), ...since(definitionAt, "the definition")];
  if (changes.length === 0 && nowMs - acceptedAt < MINUTE_MS)
    return `. Another request verified at ${toIso(acceptedAt)}, less than a minute before`;
  const until = `. Requests verified until ${toIso(acceptedAt)}, and`;
  return changes.length === 0
    ? `${until} nothing was changed here since then: the sender may have a new secret`
    : `${until} ${joinWords(changes)}`;
}

/** Finds when the relay's definition and secret last changed here, and when a request last verified. */
async function findLastChanges(
  tx: Reader,
  { id, environmentId, name }: Pick<LiveRelay, "id" | "environmentId" | "name">,
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
