/** Whose data directory it is: local development has its one app, a server has its own apps. Neither starts on the other's. */
import { createApp, findApp, listApps } from "../account/app.ts";
import { findLocalEnvironment } from "../account/environment.ts";
import type { ServiceConfig } from "../config.ts";
import { Refusal } from "../ground/refusal.ts";
import type { Store } from "../store/port.ts";

/** Local development runs this one app. */
export const LOCAL_APP = "local";

/** Refuses with `database_refused`. */
export async function requireMode(
  store: Store,
  { mode, dataDir }: Pick<ServiceConfig, "mode" | "dataDir">,
): Promise<void> {
  const isEmpty = (await store.read(listApps)).length === 0;
  const isLocal = (await store.read(findLocalEnvironment)) !== null;
  if (isEmpty || isLocal === (mode === "local")) return;
  throw new Refusal(
    "database_refused",
    isLocal
      ? `The data directory ${dataDir} belongs to local development (relay dev): give the server another --data-dir.`
      : `The data directory ${dataDir} belongs to a server (relay serve): give local development another --data-dir.`,
  );
}

/** Makes local development's app with its one environment, unless it is there. */
export async function ensureLocalApp(store: Store, nowMs: number): Promise<void> {
  const exists = await store.read((tx) => findApp(tx, LOCAL_APP));
  if (exists !== null) return;
  await store.write("app", (tx) =>
    createApp(tx, { id: LOCAL_APP, name: "Local development", environments: ["local"], nowMs }),
  );
}
