/**
 * Keeps the response of an apply whose request named a key. The caller of a lost response repeats the request and gets the same response, with its
 * secrets. The transaction of the apply writes the row, so the row exists exactly if the changes do. A refused apply keeps nothing.
 */

import { type Json, parseJson, writeCanonicalJson, writeJson } from "../../base/json.ts";
import { APPLY_RESPONSE_LIFE_MS, MAX_APPLY_RESPONSES } from "../../base/limit.ts";
import { Refusal } from "../../base/refusal.ts";
import type { Change } from "../../platform/audit/audit.ts";
import type { Sealer } from "../../platform/secret/seal.ts";
import type { Reader, Writer } from "../../store/port.ts";
import { bytes, defineTable, integer, text } from "../../store/table.ts";
import type { PlanResult } from "./plan-view.ts";

const APPLY_RESPONSE = defineTable({
  name: "apply_response",
  key: ["environmentId", "caller", "requestKey"],
  columns: {
    environmentId: integer(),
    /** The caller, as the audit writes it. */
    caller: text(),
    requestKey: text(),
    requestHash: bytes(),
    /** The response, sealed because it contains new secrets. */
    response: bytes(),
    createdAt: integer(),
  },
});

/** The responses of one caller for one key and request. */
export class ApplyKey {
  readonly #sealer: Sealer;
  readonly #change: Change;
  readonly #key: string;
  readonly #hash: Uint8Array;

  constructor(sealer: Sealer, change: Change, key: string, request: Json) {
    this.#sealer = sealer;
    this.#change = change;
    this.#key = key;
    this.#hash = new Bun.CryptoHasher("sha256").update(writeCanonicalJson(request)).digest();
  }

  /** Returns the response of an earlier request, or null. Refuses another request of the same key with `invalid_input`. */
  async find(tx: Reader): Promise<PlanResult | null> {
    const row = await APPLY_RESPONSE.find(tx, this.#row);
    if (row === null || row.createdAt <= this.#change.nowMs - APPLY_RESPONSE_LIFE_MS) return null;
    if (!Buffer.from(row.requestHash).equals(this.#hash))
      throw new Refusal(
        "invalid_input",
        "key was used for another request in the last ten minutes, and nothing was applied: repeat that request unchanged, or use a new key.",
      );
    const response = parseJson(this.#sealer.unseal(row.response, this.#context)) as PlanResult;
    return { ...response, repeated: true };
  }

  /** Keeps the response. Deletes the expired ones of the environment, and the caller's oldest ones above the limit. */
  async record(tx: Writer, response: PlanResult): Promise<void> {
    const { environmentId, by, nowMs } = this.#change;
    await tx.run(
      "DELETE FROM apply_response WHERE environment_id = $environmentId AND created_at <= $until",
      {
        environmentId,
        until: nowMs - APPLY_RESPONSE_LIFE_MS,
      },
    );
    await tx.run(
      `DELETE FROM apply_response WHERE environment_id = $environmentId AND caller = $by AND request_key IN (
         SELECT request_key FROM apply_response WHERE environment_id = $environmentId AND caller = $by
         ORDER BY created_at DESC, request_key LIMIT 10 OFFSET $kept)`,
      { environmentId, by, kept: MAX_APPLY_RESPONSES - 1 },
    );
    await APPLY_RESPONSE.insert(tx, {
      ...this.#row,
      requestHash: this.#hash,
      response: this.#sealer.seal(writeJson(response), this.#context),
      createdAt: nowMs,
    });
  }

  get #row() {
    const { environmentId, by } = this.#change;
    return { environmentId, caller: by, requestKey: this.#key };
  }

  get #context(): string {
    const { environmentId, by } = this.#change;
    return `apply_response:${environmentId}:${by}:${this.#key}`;
  }
}

/**
 * Applies in this transaction and keeps the response under the key, or returns the kept response. A request whose first one still runs waits for
 * it, because the store runs one writing transaction at a time.
 */
export async function applyOnce(
  tx: Writer,
  key: ApplyKey | null,
  apply: () => Promise<PlanResult>,
): Promise<PlanResult> {
  const earlier = key === null ? null : await key.find(tx);
  if (earlier !== null) return earlier;
  const done = await apply();
  await key?.record(tx, done);
  return done;
}
