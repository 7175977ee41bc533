/**
 * Reads rows that the troubles of an environment share: its open alerts, the time of its test mail and its relays. Each list or request reads them
 * once, because a read of the alerts or of the test mail costs up to thousands of rows.
 */
import { listOpenBursts, type OpenBurst } from "../../platform/audit/alert.ts";
import { findTestMailAt } from "../../platform/mail/email.ts";
import type { Reader } from "../../store/port.ts";
import { findRelay, type RelayRow, relayOf } from "./relay.ts";

export class TroubleRows {
  readonly environmentId: number;
  #openBursts: OpenBurst[] | undefined;
  #testMailAt: number | null | undefined;
  readonly #relays = new Map<string, RelayRow | null>();

  constructor(environmentId: number) {
    this.environmentId = environmentId;
  }

  async listOpenBursts(tx: Reader): Promise<OpenBurst[]> {
    this.#openBursts ??= await listOpenBursts(tx, this.environmentId);
    return this.#openBursts;
  }

  async findTestMailAt(tx: Reader): Promise<number | null> {
    if (this.#testMailAt === undefined) this.#testMailAt = await findTestMailAt(tx, this.environmentId);
    return this.#testMailAt;
  }

  /** Finds the relay that a target names. Returns null for another target or a deleted relay. */
  async findRelay(tx: Reader, target: string): Promise<RelayRow | null> {
    const name = relayOf(target);
    if (name === null) return null;
    const known = this.#relays.get(name);
    if (known !== undefined) return known;
    const relay = await findRelay(tx, this.environmentId, name);
    this.#relays.set(name, relay);
    return relay;
  }
}
