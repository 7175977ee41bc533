/** An HTTP scenario is a table row: the request, the answer, the rows that changed, and that nothing else happened. */
import { expect, test } from "bun:test";
import { type ApiServer, type Call, changesBetween, startApi } from "./api-server.ts";

export interface Scenario {
  /** The rule's sentence. */
  name: string;
  /** What must be there first. */
  given?: (api: ApiServer) => Promise<unknown>;
  /** `POST /relays`; a path that does not start with /api is below the development environment. */
  request: string | ((api: ApiServer) => string);
  /** By default the development environment's secret key. */
  call?: Call | ((api: ApiServer) => Call);
  status: number;
  /** Fields the answer holds, deeply. */
  answer?: unknown;
  /** Rows gained by table; 0: changed in place. Every table that is not named must be untouched. */
  changes?: Record<string, number>;
  /** What else must be true. */
  also?: (api: ApiServer, reply: Awaited<ReturnType<ApiServer["call"]>>) => unknown;
}

/** Runs each row as a test of its own, on a service of its own. */
export function runScenarios(scenarios: readonly Scenario[]): void {
  for (const scenario of scenarios) test(scenario.name, () => runScenario(scenario));
}

async function runScenario(scenario: Scenario): Promise<void> {
  await using api = await startApi();
  await scenario.given?.(api);
  const before = await api.snapshot();
  const request = typeof scenario.request === "string" ? scenario.request : scenario.request(api);
  const [method = "GET", path = "/"] = request.split(" ");
  const call = typeof scenario.call === "function" ? scenario.call(api) : (scenario.call ?? {});
  const by = call.session === true || call.key !== undefined ? {} : { key: api.keys.dev };
  const whole = path.startsWith("/api/") || path.startsWith("/docs") ? path : `${api.E}${path}`;
  const reply = await api.call(whole, { ...by, ...call, method });
  expect({ status: reply.status, text: reply.text }).toEqual({ status: scenario.status, text: reply.text });
  if (scenario.answer !== undefined) expect(reply.json).toMatchObject(scenario.answer as object);
  expect(changesBetween(before, await api.snapshot())).toEqual(scenario.changes ?? {});
  await scenario.also?.(api, reply);
}
