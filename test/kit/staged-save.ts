/** Failures that a save can know: what it takes can never happen, or not when one thinks. */
import { CALLS, type StagedFailure, type Stand } from "./staged-failure.ts";

const watching = (trigger: object) => ({
  name: "watching",
  trigger: { kind: "data_change", collection: "orders", on: ["created"], ...trigger },
  actions: [CALLS],
});

const write = (stand: Stand) => stand.running.api("POST", "/collections/orders/records", { data: { order: "a", amount: "4" } });

export const STAGED_SAVES: readonly StagedFailure[] = [
  {
    name: "ghost collection",
    stage: (stand) => stand.save(watching({ collection: "ordrs" })),
    where: ["answer"],
    cause: /no collection named ordrs in this environment yet, so that no record changes and this relay never runs: did you mean orders\?/,
  },
  {
    name: "`where` of the wrong type",
    async stage(stand) {
      await stand.save(watching({ where: { amount: 4 } }));
      await write(stand);
    },
    where: ["answer"],
    cause: /`trigger\.where\.amount` is a number: it must be text, as the collection orders says, or no record matches/,
  },
  {
    name: "a relay's own write",
    async stage(stand) {
      await stand.relay();
      await stand.save(watching({}));
      await stand.call({ id: "a" });
      await stand.pass(2_000);
    },
    where: ["answer"],
    cause: /the relay orders writes orders too, and what a relay writes never starts a relay/,
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
    stage: (stand) => stand.save({ name: "weekly", trigger: { kind: "schedule", every: "1w" }, actions: [CALLS] }),
    where: ["answer"],
    cause: /2026-01-19T00:00:00\.000Z/,
  },
];
