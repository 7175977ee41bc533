/**
 * The handwritten pages of docs/ in the repository: one line for each file. The executable contains their text. A text from a registry replaces
 * each `<!-- fill: name -->`.
 */
import actions from "../../../docs/actions.md" with { type: "text" };
import alertChannels from "../../../docs/alert-channels.md" with { type: "text" };
import api from "../../../docs/api.md" with { type: "text" };
import assistants from "../../../docs/assistants.md" with { type: "text" };
import audit from "../../../docs/audit.md" with { type: "text" };
import catalog from "../../../docs/catalog.md" with { type: "text" };
import commands from "../../../docs/commands.md" with { type: "text" };
import configuration from "../../../docs/configuration.md" with { type: "text" };
import customerWithoutAccess from "../../../docs/customer-without-access.md" with { type: "text" };
import dashboard from "../../../docs/dashboard.md" with { type: "text" };
import definition from "../../../docs/definition.md" with { type: "text" };
import docker from "../../../docs/docker.md" with { type: "text" };
import errors from "../../../docs/errors.md" with { type: "text" };
import firstHour from "../../../docs/first-hour.md" with { type: "text" };
import install from "../../../docs/install.md" with { type: "text" };
import installServer from "../../../docs/install-server.md" with { type: "text" };
import kubernetes from "../../../docs/kubernetes.md" with { type: "text" };
import limits from "../../../docs/limits.md" with { type: "text" };
import metrics from "../../../docs/metrics.md" with { type: "text" };
import offSiteBackups from "../../../docs/off-site-backups.md" with { type: "text" };
import operations from "../../../docs/operations.md" with { type: "text" };
import peopleAndSelling from "../../../docs/people-and-selling.md" with { type: "text" };
import postgres from "../../../docs/postgres.md" with { type: "text" };
import production from "../../../docs/production.md" with { type: "text" };
import providerSaysSent from "../../../docs/provider-says-sent.md" with { type: "text" };
import rotateSecret from "../../../docs/rotate-secret.md" with { type: "text" };
import security from "../../../docs/security.md" with { type: "text" };
import sellingKits from "../../../docs/selling-kits.md" with { type: "text" };
import senders from "../../../docs/senders.md" with { type: "text" };
import singleSignOn from "../../../docs/single-sign-on.md" with { type: "text" };
import templates from "../../../docs/templates.md" with { type: "text" };
import trustedProxy from "../../../docs/trusted-proxy.md" with { type: "text" };
import upgrade from "../../../docs/upgrade.md" with { type: "text" };
import { type DocPage, readPage } from "./page.ts";

const FILES: Readonly<Record<string, string>> = {
  actions,
  "alert-channels": alertChannels,
  api,
  assistants,
  audit,
  catalog,
  commands,
  configuration,
  "customer-without-access": customerWithoutAccess,
  dashboard,
  definition,
  docker,
  errors,
  "first-hour": firstHour,
  install,
  "install-server": installServer,
  kubernetes,
  limits,
  metrics,
  "off-site-backups": offSiteBackups,
  operations,
  "people-and-selling": peopleAndSelling,
  postgres,
  production,
  "provider-says-sent": providerSaysSent,
  "rotate-secret": rotateSecret,
  security,
  "selling-kits": sellingKits,
  senders,
  "single-sign-on": singleSignOn,
  templates,
  "trusted-proxy": trustedProxy,
  upgrade,
};

const FILL = /^<!-- fill: ([a-z-]+) -->$/gm;

/** Reads the pages. Throws if a placeholder has no text. */
export function readWrittenPages(fills: Readonly<Record<string, () => string>>): DocPage[] {
  return Object.entries(FILES).map(([id, file]) => {
    const page = readPage(id, file);
    const text = page.text.replaceAll(FILL, (_, name: string) => {
      const fill = fills[name];
      if (fill === undefined) throw new Error(`docs/${id}.md asks for ${name}, which nothing gives.`);
      return fill().trim();
    });
    return { ...page, text };
  });
}
