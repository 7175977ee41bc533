/** A service on a filled store, with the tokens that a caller needs for each of its routes. */
import { join } from "node:path";
import type { Clock } from "../../src/base/clock.ts";
import { mintApiKey } from "../../src/platform/account/api-key.ts";
import { createApp } from "../../src/platform/account/app.ts";
import { createOwner } from "../../src/platform/account/owner.ts";
import { createSession } from "../../src/platform/account/session.ts";
import { type Service, startService } from "../../src/service.ts";
import { createPersonSession } from "../../src/shop/portal/person-session.ts";
import { openSqlite } from "../../src/store/sqlite/sqlite.ts";
import { fillStore, firstEventMs, rowId } from "./filled-store.ts";
import { RAISED_LIMITS, serviceConfig } from "./service-config.ts";

/** The tokens of each kind of caller, and the time at which the ids of filled events begin. */
export interface FilledAccess {
  url: string;
  session: string;
  secret: string;
  app: string;
  person: string;
  firstMs: number;
}

export interface FilledService {
  service: Service;
  access: FilledAccess;
}

/** Starts a service. `share` is the fraction of the rows that years of use bring. */
export async function startFilledService(dataDir: string, { clock, share }: { clock: Clock; share: number }): Promise<FilledService> {
  const file = join(dataDir, "relay.db");
  const nowMs = clock.now();
  const seeded = await seed(file, clock);
  fillStore(file, { nowMs, share });
  const service = await startService(serviceConfig(dataDir, { limits: RAISED_LIMITS, clock }), {
    logSink: () => undefined,
    printRun: () => undefined,
  });
  const person = await service.store.write("app", (tx) => createPersonSession(tx, { environmentId: 1, personId: rowId("per", 1), nowMs }));
  return { service, access: { url: service.url, person: person.token, firstMs: firstEventMs(nowMs), ...seeded } };
}

/** Creates the app `shop` with two environments, its owner and its keys. */
async function seed(file: string, clock: Clock): Promise<Pick<FilledAccess, "session" | "secret" | "app">> {
  const nowMs = clock.now();
  const store = await openSqlite(file, { clock });
  const seeded = await store.write("dashboard", async (tx) => {
    const environments = ["development", "production"] as const;
    const made = await createApp(tx, { id: "shop", name: "Shop", environments, nowMs });
    const [environment] = made.environments;
    if (environment === undefined) throw new Error("no environment");
    const owner = await createOwner(tx, { email: "ann@example.com", passwordHash: null, nowMs });
    const { token: session } = await createSession(tx, owner.id, nowMs);
    const key = async (kind: "secret" | "app") => (await mintApiKey(tx, { environment, kind, name: "test", origins: [], nowMs })).token;
    return { session, secret: await key("secret"), app: await key("app") };
  });
  await store.close();
  return seeded;
}
