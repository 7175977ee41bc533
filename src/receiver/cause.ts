/**
 * Why a refused call did not verify, looked into after it was answered, one call after another and bounded in number, bytes and work: a flood
 * of refused calls takes two hundredths of a core and no more, and its calls keep the plain cause. It changes no answer and counts nothing.
 */
import { type Clock, toIso } from "../ground/clock.ts";
import { MINUTE_MS } from "../ground/limit.ts";
import type { Log } from "../ground/log.ts";
import { findLastChanges, listSecretsAtHand } from "../relay/secret-at-hand.ts";
import type { Sealer } from "../secret/seal.ts";
import type { Store } from "../store/port.ts";
import { turnLoop } from "../store/walk.ts";
import type { HeaderList } from "../verify/carried.ts";
import type { ReceivedCall } from "../verify/contract.ts";
import { type Difference, findDifference } from "../verify/difference.ts";
import type { UnverifiedBy } from "./refusal.ts";

const MAX_WAITING = 16;
const MAX_WAITING_BYTES = 1024 * 1024;
/** Work that may be done at once, and that comes back in a second. */
const MAX_WORK_US = 300_000;
const WORK_US_PER_SECOND = 20_000;
/** What one costs beside what it tries: opening secrets. */
const SURE_US = 500;

interface RefusedReceipt {
  by: UnverifiedBy;
  call: ReceivedCall;
  headers: HeaderList;
  /** When a call of this relay last verified; null: never. */
  acceptedAt: number | null;
  /** Takes the whole cause, and whether it names what has to be otherwise, or at least since when; null: neither. */
  tell(cause: string, names: "difference" | "since" | null): void;
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
  add(receipt: RefusedReceipt): void {
    const bytes = receipt.call.body.byteLength;
    this.#waiting += 1;
    this.#waitingBytes += bytes;
    this.#last = this.#last.then(async () => {
      await turnLoop();
      await this.#look(receipt);
      this.#waiting -= 1;
      this.#waitingBytes -= bytes;
    });
  }

  /** Resolves when every call that waits now was looked into. */
  settle(): Promise<void> {
    return this.#last;
  }

  async #look({ by, call, headers, acceptedAt, tell }: RefusedReceipt): Promise<void> {
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
      const history = changed === null ? "" : tellHistory(acceptedAt, call.nowMs, changed);
      const names = difference.changes !== null ? "difference" : history === "" ? null : "since";
      tell(`${cause}${tellDifference(difference, unmatched)}${history}`, names);
    } catch (error) {
      log.warn("the cause of a refused call could not be looked into", { relay: relay.name, error });
      tell(cause, null);
    }
  }
}

const words = new Intl.ListFormat("en-GB", { type: "conjunction" });

/** What was found, to follow the plain cause; "" where nothing was. */
export function tellDifference(
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
function tellHistory(
  acceptedAt: number | null,
  nowMs: number,
  { definitionAt, secretAt }: { definitionAt: number | null; secretAt: number | null },
): string {
  if (acceptedAt === null) return "; no call has verified here yet";
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
