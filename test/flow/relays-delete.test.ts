/** Tests `relay relays delete` on a data directory and on a server: it asks for a confirmation, and is audited like the dashboard's Delete. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { COMMAND_PLACES, runAt } from "../kit/cli-place.ts";
import { sendEvent } from "../kit/event-flow.ts";
import { receiverDefinition, saveRelay } from "../kit/relay-definition.ts";
import { type RunningService, startRunningService } from "../kit/running-service.ts";

let running: RunningService;

beforeEach(async () => {
  running = await startRunningService();
  await running.api("PUT", "/access/beta", {});
  const actions = [{ type: "grant_access", entitlement: "access:beta" }];
  await saveRelay(running, receiverDefinition({ map: { event_id: "id", person_email: "email" }, actions }));
});
afterEach(() => running[Symbol.asyncDispose]());

const GONE =
  "its receiver URL answers 404, so its requests are lost. Waiting events become failed. Its secrets are permanently deleted. Its events stay for 30 days.";
const names = async () => (await running.api("GET", "/relays")).body.items.map(({ name }: { name: string }) => name);

describe.each(COMMAND_PLACES)("%s", (place) => {
  const remove = (words: string, more = {}) => runAt(place, running, ["relays", "delete", ...words.split(" ")], "", more);

  test("deletes after the name is repeated, ends waiting events as failed, and audits it", async () => {
    await running.api("POST", "/relays/orders/pause");
    const event = await sendEvent(running, "in_1", { email: "ada@example.com" });
    const { code, told } = await remove("orders --confirm orders");
    expect([code, told]).toEqual([
      0,
      expect.stringContaining(`orders is deleted: ${GONE.replace("become failed.", "become failed (1 in the last 24 hours).")}`),
    ]);
    expect(await names()).toEqual([]);
    expect((await running.api("GET", "/audit?action=relay.deleted")).body.items).toMatchObject([
      { actor: expect.stringMatching(/^(command line|key:)/), target: "relay:orders" },
    ]);
    // A service polls once per second for other processes' changes.
    await running.clock.advance(2_000);
    await running.drain();
    expect((await running.api("GET", `/events/${event}`)).body.event).toMatchObject({ state: "failed", reason: "relay_deleted" });
  });

  test("deletes nothing without a confirmation: it prints the option without a terminal, and asks at a terminal", async () => {
    const silent = await remove("orders");
    expect([silent.code, silent.told]).toEqual([
      1,
      expect.stringContaining(
        `If you delete orders: ${GONE}\nNothing was deleted, because there is no terminal for the question: write relay relays delete orders --confirm orders to confirm.`,
      ),
    ]);
    const asked: string[] = [];
    const answer = (yes: boolean) => ({
      interactive: true,
      confirm: (question: string) => Promise.resolve(asked.push(question) > 0 && yes),
    });
    const no = await remove("orders", answer(false));
    expect([no.code, no.told]).toEqual([1, expect.stringContaining("\nNothing was deleted.")]);
    expect(await names()).toEqual(["orders"]);
    expect((await remove("orders", answer(true))).code).toBe(0);
    expect([asked, await names()]).toEqual([["Permanently delete orders?", "Permanently delete orders?"], []]);
  });

  test("rejects another name after --confirm as a usage error, and suggests the nearest name for an unknown relay", async () => {
    const other = await remove("orders --confirm order");
    expect([other.code, other.told]).toEqual([2, expect.stringContaining('--confirm is "order", but the relay is orders: write --confirm orders.')]);
    const near = await remove("order --confirm order");
    expect([near.code, near.told]).toEqual([1, expect.stringContaining("Did you mean orders?")]);
    expect(await names()).toEqual(["orders"]);
  });

  test.each([
    ["a sync", null, "It came from a file: the next relay sync creates it again unless you delete the file too."],
    ["a promote", "development", "It was promoted from development: the next relay promote creates it again unless you delete it there too."],
  ])("says that %s would create the relay again, if one created it", async (_what, from, again) => {
    await running.service.store.write("app", (tx) =>
      tx.run("UPDATE relay SET origin_kind = 'file', promoted_from = ?1, promoted_version = version WHERE name = 'orders'", from),
    );
    expect((await remove("orders --confirm orders")).told).toContain(again);
  });

  test("warns of products that the relay sells, and prints the result with --json", async () => {
    await running.api("PUT", "/products/lamp", { soldThrough: { kind: "relay", relay: "orders" } });
    const { code, said, told } = await remove("orders --confirm orders --json");
    const { deleted, warnings } = JSON.parse(said);
    expect([code, deleted]).toEqual([0, "orders"]);
    expect(warnings.map(({ code }: { code: string }) => code)).toEqual(["reference_missing"]);
    expect(told).toContain(`Warning: ${warnings[0].message}`);
  });
});
