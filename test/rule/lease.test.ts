/** The lease of one server. Only one of two servers that start at once gets it. A holder loses it only if it has ended or does not answer. */
import { afterEach, expect, spyOn, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../../src/base/clock.ts";
import { DirectoryLease } from "../../src/store/lease/directory-lease.ts";
import { type Store, StoreUnavailable } from "../../src/store/port.ts";
import { DataDirectoryTaken, type DirectoryLock } from "../../src/store/sqlite/directory-lock.ts";
import { openSqlite } from "../../src/store/sqlite/sqlite.ts";

const opened: { folder: string; stores: Store[] }[] = [];
afterEach(async () => {
  for (const { folder, stores } of opened.splice(0)) {
    for (const store of stores) await store.close();
    rmSync(folder, { recursive: true });
  }
});

/** Opens servers that each believe they hold the directory's lock, as after its file was removed. */
async function openServers(count: number) {
  const folder = mkdtempSync(join(tmpdir(), "relay-lease-"));
  const file = join(folder, "relay.db");
  const stores: Store[] = [];
  for (let at = 0; at < count; at++) stores.push(await openSqlite(file, { clock: systemClock }));
  opened.push({ folder, stores });
  return stores.map((store, at) => ({ store, take: () => DirectoryLease.take({ store, file, lock: lockOf(at), clock: systemClock }) }));
}

function lockOf(at: number): DirectoryLock {
  return { holder: `server ${at}`, identity: `lock ${at}`, stands: () => true, renew: () => true, release: () => undefined };
}

const readLease = (store: Store) =>
  store.read((tx) =>
    tx.get<{ epoch: number; holder: string; asked: number; answered: number }>("SELECT epoch, holder, asked, answered FROM runner_lease"),
  );
const change = (store: Store, set: string) => store.write("app", (tx) => tx.run(`UPDATE runner_lease SET ${set}`));

/** The id of a process that has ended. */
const GONE = Bun.spawnSync([process.execPath, "--version"]).pid;

test("of two servers that start at once, one takes the lease and the other is refused", async () => {
  const [first, second] = await openServers(2);
  if (first === undefined || second === undefined) throw new Error("Two servers were asked for.");
  const write = first.store.write.bind(first.store);
  // The second server takes the lease after the first has read that it is free.
  const spy = spyOn(first.store, "write").mockImplementationOnce(async (origin, work) => {
    await second.take();
    return await write(origin, work);
  });
  const refused = await first.take().catch((error: unknown) => error);
  spy.mockRestore();
  expect(refused).toBeInstanceOf(DataDirectoryTaken);
  expect((refused as Error).message).toContain("another process that started at the same time");
  expect(await readLease(second.store)).toMatchObject({ epoch: 1, holder: "server 1" });
});

test("writes of a server are refused once another server has the lease", async () => {
  const [first, second] = await openServers(2);
  if (first === undefined || second === undefined) throw new Error("Two servers were asked for.");
  const lease = await first.take();
  await lease.storeOf().write("relay", (tx) => tx.run("UPDATE runner_lease SET probes = probes + 1"));
  await change(first.store, `pid = ${GONE}`);
  await second.take();
  const late = lease.storeOf().write("relay", (tx) => tx.run("UPDATE runner_lease SET probes = probes + 1"));
  expect(await late.catch((error: unknown) => error)).toBeInstanceOf(StoreUnavailable);
  expect(lease.lostTo).toBe("server 1");
});

test("a holder on another machine is probed, whatever process has its number here, and one answer keeps its lease", async () => {
  const [first, second] = await openServers(2);
  if (first === undefined || second === undefined) throw new Error("Two servers were asked for.");
  await first.take();
  await change(first.store, `host = 'elsewhere', pid = ${GONE}`);
  const refused = second.take().catch((error: unknown) => error);
  while ((await readLease(first.store))?.asked === 0 && Bun.peek.status(refused) === "pending") await Bun.sleep(5);
  await change(first.store, "answered = asked");
  expect(await refused).toBeInstanceOf(DataDirectoryTaken);
  expect(await readLease(first.store)).toMatchObject({ epoch: 1, holder: "server 0" });
});
