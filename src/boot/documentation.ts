/**
 * Puts the documentation of this program together from the written pages and the registries of all modules. It is above all of them, so that no
 * module depends on its documentation.
 */

import { systemClock } from "../base/clock.ts";
import { Metrics } from "../engine/metrics/metrics.ts";
import { ROUTES } from "../interfaces/api/route-list.ts";
import { COMMANDS } from "../interfaces/cli/registry.ts";
import { OTEL_VARIABLES } from "../interfaces/cli/server/otel-variable.ts";
import { listApiPages, listRoutes } from "../interfaces/docs/api-page.ts";
import { writeCatalogFields } from "../interfaces/docs/catalog-part.ts";
import { writeCommands, writeOwnVariables, writeVariables } from "../interfaces/docs/command-part.ts";
import {
  writeActions,
  writeDefinitionFields,
  writeKnownNames,
  writeSchemes,
  writeTemplatePaths,
  writeTriggers,
  writeVerifiers,
} from "../interfaces/docs/definition-part.ts";
import { Docs } from "../interfaces/docs/docs.ts";
import { listErrorPages, listErrors } from "../interfaces/docs/error-page.ts";
import { listKitPages, listKits } from "../interfaces/docs/kit-page.ts";
import { writeFixedLimits, writeRaisableLimits, writeRetries } from "../interfaces/docs/limit-part.ts";
import { writeAuditActions, writeMetrics } from "../interfaces/docs/list-part.ts";
import { PACKAGING_FILLS } from "../interfaces/docs/packaging-part.ts";
import { writePermissions, writeRoles } from "../interfaces/docs/permission-part.ts";
import { writeRules } from "../interfaces/docs/rule-example.ts";
import { listSenderPages, listSenders } from "../interfaces/docs/sender-page.ts";
import { writeSettings } from "../interfaces/docs/setting-part.ts";
import { readWrittenPages } from "../interfaces/docs/written.ts";

/** The texts that replace the placeholders of written pages. */
const FILLS: Readonly<Record<string, () => string>> = {
  "definition-fields": writeDefinitionFields,
  triggers: writeTriggers,
  "known-names": writeKnownNames,
  schemes: writeSchemes,
  "rules-names": () => writeRules("Names and numbers"),
  "rules-map": () => writeRules("map and when"),
  "rules-recipe": () => writeRules("A signature recipe"),
  "rules-signed-text": () => writeRules("The signed text"),
  "rules-unsigned": () => writeRules("Unsigned events"),
  "rules-schedule": () => writeRules("Schedules"),
  "rules-actions": () => writeRules("Actions"),
  actions: writeActions,
  verifiers: writeVerifiers,
  "template-paths": writeTemplatePaths,
  catalog: writeCatalogFields,
  errors: listErrors,
  limits: writeFixedLimits,
  "raisable-limits": writeRaisableLimits,
  retries: writeRetries,
  senders: listSenders,
  kits: listKits,
  commands: () => writeCommands(COMMANDS),
  variables: () => writeVariables(COMMANDS),
  "otel-variables": () => writeOwnVariables(OTEL_VARIABLES),
  routes: () => listRoutes(ROUTES),
  roles: writeRoles,
  permissions: writePermissions,
  settings: writeSettings,
  audit: writeAuditActions,
  metrics: () => writeMetrics(readMetrics()),
  ...PACKAGING_FILLS,
};

function readMetrics() {
  const metrics = new Metrics({ dataDir: "", clock: systemClock });
  metrics.stop();
  return metrics.list();
}

let manual: Docs | undefined;

/** Returns the documentation. The first call creates it. */
export function readManual(): Docs {
  manual ??= new Docs([
    ...readWrittenPages(FILLS),
    ...listSenderPages(),
    ...listKitPages(),
    ...listErrorPages(),
    ...listApiPages(ROUTES),
  ]);
  return manual;
}
