/** Finds the person who has what another person had at a time. A merge (selling/person-merge.ts) moves everything, and its audit says where to. */
import type { Reader } from "../../store/port.ts";

/** The most merges that are followed, and the newest changes of a person that are read to find one. */
const MAX_MERGES = 10;
const MAX_CHANGES = 200;

const NEXT_MERGE = `SELECT seq, holder FROM (SELECT seq, at, action, after ->> '$.into' AS holder FROM audit INDEXED BY audit_by_target
    WHERE environment_id = $environmentId AND target = $target AND event_id IS NULL ORDER BY seq DESC LIMIT ${MAX_CHANGES}) AS newest
  WHERE action = 'person.merged' AND holder IS NOT NULL AND at >= $atMs AND seq > $seq ORDER BY seq LIMIT 1`;

/** Finds the id of the person who has what the person had at that time, in milliseconds. Without a merge since, it is the person. */
export async function findHolderNow(
  tx: Reader,
  environmentId: number,
  personId: string,
  atMs: number,
): Promise<string> {
  let [holder, seq] = [personId, 0];
  for (let count = 0; count < MAX_MERGES; count++) {
    const merge = await tx.get<{ seq: number; holder: string }>(NEXT_MERGE, {
      environmentId,
      target: `person:${holder}`,
      atMs,
      seq,
    });
    if (merge === null) break;
    ({ holder, seq } = merge);
  }
  return holder;
}
