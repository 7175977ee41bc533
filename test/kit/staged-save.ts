/** Staged failures that a save can detect: a relay that can never run, or runs at another time than its owner expects. */
import { toIso } from "../../src/base/clock.ts";
import { DAY, type StagedFailure, type Stand } from "./staged-failure.ts";

const watching = ({ notice }: Stand, trigger: object) => ({
  name: "watching",
  trigger: { kind: "data_change", collection: "orders", on: ["created"], ...trigger },
  actions: [notice],
});

const write = (stand: Stand) => stand.api("POST", "/collections/orders/records", { data: { order: "a", amount: "4" } });

/** Returns the next Monday at midnight UTC. 1970-01-05 was a Monday. */
function nextMonday(atMs: number): string {
  const week = 7 * DAY;
  return toIso(Math.ceil((atMs - 4 * DAY) / week) * week + 4 * DAY);
}

export const STAGED_SAVES: readonly StagedFailure[] = [
  {
    name: "ghost collection",
    stage: (stand) => stand.save(watching(stand, { collection: "ordrs" })),
    where: ["answer"],
    cause: /no collection named ordrs in this environment yet, so no record changes and this relay never runs: did you mean orders\?/,
  },
  {
    name: "`where` of the wrong type",
    async stage(stand) {
      await stand.save(watching(stand, { where: { amount: 4 } }));
      await write(stand);
    },
    where: ["answer"],
    cause: /`trigger\.where\.amount` is a number: it must be text in the collection orders; otherwise no record matches/,
  },
  {
    name: "a relay's own write",
    async stage(stand) {
      await stand.relay();
      await stand.save(watching(stand, {}));
      await stand.call({ id: "a" });
      await stand.pass(2_000);
    },
    where: ["answer"],
    cause: /the relay orders writes orders too, and a record that a relay writes never starts a relay/,
  },
  {
    name: "a change of the catalog that breaks a relay",
    async stage(stand) {
      await stand.relay();
      await stand.change("PUT", "/collections/orders", { kind: "shared", fields: { order: { type: "text" } } });
    },
    where: ["answer", "problem"],
    cause: /`actions\.0\.data\.amount` is not a field of the collection orders/,
  },
  {
    name: "mid-period schedule",
    stage: (stand) => stand.save({ name: "weekly", trigger: { kind: "schedule", every: "1w" }, actions: [stand.notice] }),
    where: ["answer"],
    cause: ({ startMs }) => new RegExp(nextMonday(startMs)),
  },
];
