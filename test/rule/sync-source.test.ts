/** A promote applies the state of its source that its plan shows, also when the source changes between the reading and the apply. */
import { expect, test } from "bun:test";
import { readEnvironmentFiles, requirePlan } from "../../src/operator/sync/environment-files.ts";
import { readPlan } from "../../src/operator/sync/plan.ts";
import type { Environment } from "../../src/platform/account/environment.ts";
import { editRelay, WRITE } from "../kit/event-flow.ts";
import { makeOrders, receiverDefinition, saveRelay } from "../kit/relay-definition.ts";
import { startRunningService } from "../kit/running-service.ts";

type Place = Pick<Environment, "id" | "name">;

test("a plan is void when its source changed after it was read", async () => {
  await using running = await startRunningService({ environments: ["development", "production"] });
  await makeOrders(running);
  await saveRelay(running, receiverDefinition({}));
  const [source, target] = await running.rows<Place>("SELECT id, name FROM environment ORDER BY name");
  if (source === undefined || target === undefined) throw new Error("The service has no two environments.");
  const { store } = running.service;
  const files = await readEnvironmentFiles(store, source, running.clock.now());
  const plan = await store.read((tx) => readPlan(tx, target.id, files));
  expect(await store.read((tx) => requirePlan(tx, target.id, files, plan.id))).toEqual(plan);
  await editRelay(running, receiverDefinition({ actions: [WRITE, WRITE] }));
  await expect(store.read((tx) => requirePlan(tx, target.id, files, plan.id))).rejects.toMatchObject({ code: "version_conflict" });
});
