/**
 * Makes the requests of a life: the provider's bodies with the values of each step. `{person}` is the customer's address. `{run}` is a number
 * of 12 digits of this playing of the life, and `{event}` is one of each request, so that a life can be played again. `{at}` is the time of
 * the request as ISO 8601, and `{at+30}` the same 30 days later. A text that is only `{run:number}`, `{at:s}` or `{at:ms}` becomes a number.
 */
import { isJsonObject, type Json, type JsonObject } from "../../base/json.ts";
import { DAY_MS } from "../../base/limit.ts";
import type { Kit, KitLife, LifeOutcome } from "./kit.ts";
import { fillNames, type KitNames } from "./kit-definitions.ts";
import { exampleBody } from "./sender-start.ts";

interface Playing {
  names: KitNames;
  /** The customer's address. */
  person: string;
  /** 12 digits. Another playing has another number. */
  run: string;
  /** When the life begins. */
  startMs: number;
}

export interface LifeRequest {
  body: string;
  contentType: string;
  namesCustomer: boolean;
}

interface PlayedStep {
  day: number;
  does: string;
  requests: LifeRequest[];
  outcome: LifeOutcome;
}

/** Makes every step of a life, in order. */
export function playLife(kit: Kit, life: KitLife, playing: Playing): PlayedStep[] {
  let count = 0;
  return life.steps.map(({ day, does, requests, outcome }) => ({
    day,
    does: fillNames(does, playing.names) as string,
    requests: requests.map(({ body, set, namesCustomer = false }) => {
      const values: Values = {
        ...playing,
        event: `${playing.run}${++count}`,
        atMs: playing.startMs + day * DAY_MS,
      };
      const base = kit.bodies[body];
      if (base === undefined) throw new Error(`The kit ${kit.sender} has no body ${body}.`);
      const filled = fillNames(fillValues(setPaths(base, set), values), playing.names) as JsonObject;
      const example = kit.form === true ? { form: filled as Record<string, string> } : { json: filled };
      return { ...exampleBody(example), namesCustomer };
    }),
    outcome: fillNames(outcome as JsonObject, playing.names) as LifeOutcome,
  }));
}

interface Values extends Playing {
  event: string;
  atMs: number;
}

/** Copies the value with other values at these dotted paths. null removes nothing: it is a value. */
function setPaths(value: JsonObject, set: Readonly<Record<string, Json>>): Json {
  return Object.entries(set).reduce<Json>(
    (made, [path, leaf]) => setPath(made, path.split("."), leaf),
    value,
  );
}

function setPath(value: Json, [first, ...rest]: readonly string[], leaf: Json): Json {
  if (first === undefined) return leaf;
  if (Array.isArray(value))
    return value.map((item, index) => (String(index) === first ? setPath(item, rest, leaf) : item));
  const object = isJsonObject(value) ? value : {};
  return { ...object, [first]: setPath(object[first] ?? {}, rest, leaf) };
}

const TIME = /\{at([+-]\d+)?(?::(s|ms))?\}/g;

function fillValues(value: Json, values: Values): Json {
  if (typeof value === "string") return fillText(value, values);
  if (Array.isArray(value)) return value.map((item) => fillValues(item, values));
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, fillValues(inner, values)]));
}

function fillText(text: string, values: Values): Json {
  const filled = text
    .replaceAll("{person}", values.person)
    .replaceAll(/\{(run|event)(:number)?\}/g, (_, name: "run" | "event") => values[name])
    .replaceAll(TIME, (_, days: string | undefined, unit: string | undefined) => {
      const atMs = values.atMs + Number(days ?? 0) * DAY_MS;
      if (unit === undefined) return new Date(atMs).toISOString();
      return String(unit === "s" ? Math.floor(atMs / 1000) : atMs);
    });
  const isNumber = /^\{(?:run:number|event:number|at(?:[+-]\d+)?:m?s)\}$/.test(text);
  return isNumber ? Number(filled) : filled;
}
