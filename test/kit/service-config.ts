/** Default configuration of a service in tests and benchmarks: a server on any free port, with one SQLite file. */

import { systemClock } from "../../src/base/clock.ts";
import type { ServiceConfig } from "../../src/base/config.ts";
import { DEFAULT_LIMITS } from "../../src/base/limit.ts";

/** A limit that no test reaches. */
const RAISED = 1_000_000_000;
export const RAISED_LIMITS = Object.fromEntries(Object.keys(DEFAULT_LIMITS).map((name) => [name, RAISED])) as unknown as ServiceConfig["limits"];

export function serviceConfig(dataDir: string, given: Partial<ServiceConfig> = {}): ServiceConfig {
  return {
    mode: "server",
    host: "127.0.0.1",
    port: 0,
    dataDir,
    database: null,
    baseUrl: null,
    serviceDir: null,
    trustedProxies: [],
    allowPrivate: [],
    concurrency: 32,
    limits: DEFAULT_LIMITS,
    logFormat: "json",
    docsUrl: null,
    backup: null,
    secondFactor: null,
    mailUrl: null,
    masterKey: null,
    telemetry: null,
    clock: systemClock,
    ...given,
  };
}
