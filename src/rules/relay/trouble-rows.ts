/**
 * Reads rows that the troubles of an environment share: its open alerts and the time of its test mail. Each list or request reads them once, because
 * a read costs up to thousands of rows.
 */
import { listOpenBursts, type OpenBurst } from "../../platform/audit/alert.ts";
import { findTestMailAt } from "../../platform/mail/email.ts";
import type { Reader } from "../../store/port.ts";

export class TroubleRows {
  readonly environmentId: number;
  #openBursts: OpenBurst[] | undefined;
  #testMailAt: number | null | undefined;

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
}
