/**
 * Loads the routes that can serve a path. A command needs one resource of an environment, and loading all routes is most of its time. A resource
 * whose routes are in many modules is not listed, so all routes are loaded for it.
 */
import type { Route } from "../http/route.ts";

const loadSelling = async () => (await import("./selling.ts")).sellingRoutes;
const loadAudit = async () => (await import("./audit.ts")).watchRoutes;
const loadMail = async () => (await import("./mail.ts")).mailRoutes;
const loadSettings = async () => (await import("./setting.ts")).settingRoutes;

/** The routes of a resource: the segment after the environment. `rest` is the path after it. */
const RESOURCES: Readonly<Record<string, (rest: string) => Promise<readonly Route[]>>> = {
  access: loadSelling,
  "alert-channels": async () => (await import("./alert-channel.ts")).alertChannelRoutes,
  alerts: loadAudit,
  audit: loadAudit,
  "bulk-replays": async () => (await import("./bulk-replay.ts")).bulkReplayRoutes,
  calls: loadAudit,
  captures: async () => (await import("./request-capture.ts")).requestCaptureRoutes,
  catalog: async () => (await import("./catalog.ts")).catalogRoutes,
  "catalog-uses": loadSelling,
  collections: async () => (await import("./record.ts")).recordRoutes,
  emails: loadMail,
  events: async (rest) => {
    const { eventListRoutes } = await import("./event-list.ts");
    return rest === "" ? eventListRoutes : [...eventListRoutes, ...(await import("./event.ts")).eventRoutes];
  },
  files: async () => (await import("./file.ts")).fileRoutes,
  grants: async () => (await import("./grant.ts")).grantRoutes,
  keys: async () => (await import("./app.ts")).appRoutes,
  limits: loadSettings,
  mail: loadMail,
  plans: loadSelling,
  problems: loadAudit,
  products: loadSelling,
  purchases: loadSelling,
  receipts: loadSelling,
  "sender-domain": loadMail,
  settings: loadSettings,
  subscriptions: loadSelling,
  "unknown-calls": loadAudit,
};

const RESOURCE = /^\/api\/apps\/[^/]+\/[^/]+\/([^/]+)(.*)/;

/** Returns routes that include every one that matches the path. */
export async function loadRoutes(pathname: string): Promise<readonly Route[]> {
  const [, resource = "", rest = ""] = RESOURCE.exec(pathname) ?? [];
  return (await RESOURCES[resource]?.(rest)) ?? (await import("./route-list.ts")).ROUTES;
}
