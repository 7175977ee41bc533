/** Serves one call of one route, step by step: who calls, where, with what, the work, the answer. Refusals pass through it thrown. */
import { type TSchema, Type } from "typebox";
import { addressOf } from "./address.ts";
import { admit, requireOwner } from "./admission.ts";
import { answerEmpty, answerJson } from "./answer.ts";
import { type BodyReader, readBytes, readJsonBody } from "./body.ts";
import { identifyCaller } from "./caller.ts";
import { admitClient } from "./client-admission.ts";
import { checkInput, checkQuery } from "./input.ts";
import type { HttpRooms } from "./rooms.ts";
import type { Route } from "./route.ts";

const NOTHING = Type.Object({}, { additionalProperties: false });

const NO_BYTES = new Uint8Array();

export interface Received {
  request: Request;
  params: Readonly<Record<string, string>>;
  /** The caller's address, for caps. */
  source: string;
}

export async function serveRoute(rooms: HttpRooms, route: Route, received: Received): Promise<Response> {
  const { request, params, source } = received;
  const headers = new Headers();
  const who = await whoCalls(rooms, route, received, headers);
  const query = checkQuery(route.query ?? NOTHING, addressOf(request).searchParams) as Record<
    string,
    unknown
  >;
  const reader: BodyReader = { room: rooms.bodies, source: () => source };
  const bytes = route.rawBytes === null ? NO_BYTES : await readBytes(request, route.rawBytes, reader);
  const body = route.rawBytes === null ? await readInput(route.body ?? NOTHING, request, reader) : {};
  const nowMs = rooms.clock.now();
  const value = await route.handle({
    rooms,
    request,
    params,
    query,
    body,
    bytes,
    source,
    nowMs,
    headers,
    ...who,
  });
  if (value instanceof Response) return value;
  // Cookies alone come more than once under one name.
  const cookies = headers.getSetCookie();
  headers.delete("set-cookie");
  const extra = Object.fromEntries(headers);
  const answer = route.answer === null ? answerEmpty(extra) : answerJson(route.status, value, extra);
  for (const cookie of cookies) answer.headers.append("set-cookie", cookie);
  return answer;
}

async function whoCalls(
  rooms: HttpRooms,
  route: Route,
  { request, params }: Received,
  headers: Headers,
): Promise<object> {
  if (route.who === "open") return {};
  if (route.who === "client" || route.who === "person") return await admitClient(rooms, request, route.who);
  const caller = await identifyCaller(rooms, request, headers);
  if (route.who === "owner") return { owner: requireOwner(caller) };
  return { visit: await admit(rooms, caller, params.appId ?? "", params.environment ?? "") };
}

/** The body where the method has one; an absent body reads as no fields. */
async function readInput(schema: TSchema, request: Request, reader: BodyReader): Promise<unknown> {
  if (request.method === "GET" || request.method === "HEAD") return {};
  return checkInput(schema, (await readJsonBody(request, reader)) ?? {});
}
