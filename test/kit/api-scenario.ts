/** An HTTP scenario is one table row: a request, its expected response and the rows that it changes. Nothing else may change. */
import { expect, test } from "bun:test";
import { type ApiServer, type Call, changesBetween, startApi } from "./api-server.ts";

export interface Scenario {
  /** The rule that the scenario checks, as a sentence. */
  name: string;
  /** Creates the data that the request needs. */
  given?: (api: ApiServer) => Promise<unknown>;
  /** `POST /relays`: a path that does not start with /api or /docs is relative to the development environment. */
  request: string | ((api: ApiServer) => string);
  /** The request of the scenario. The default carries the development environment's secret key. */
  call?: Call | ((api: ApiServer) => Call);
  status: number;
  /** Fields that the response must contain, compared deeply. */
  answer?: unknown;
  /** Number of rows that each table gains; 0 means that rows changed in place. Every table that is not listed must stay unchanged. */
  changes?: Record<string, number>;
  /** Checks further conditions after the request. */
  also?: (api: ApiServer, reply: Awaited<ReturnType<ApiServer["call"]>>) => unknown;
}

/** Runs each scenario as a separate test with a new service. */
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
