/** Makes the worst calls on a filled service, each with the token that its route asks for. */
import { MAX_FOLLOWERS } from "../../src/base/limit.ts";
import { readWhole } from "./change-stream.ts";
import type { FilledAccess } from "./filled-service.ts";
import { eventId, LAST_WIDE_EVENT } from "./filled-store.ts";
import { definition, SYNCED, TOKEN } from "./worst-body.ts";
import { APPROVAL, type Ask, CAPTURE, E, OTHER_EVENT, WIDE_EVENT, writeBody } from "./worst-call.ts";

interface Asked {
  status: number;
  text: string;
  /** True if the call got the response that its table says. */
  isExpected: boolean;
}

export interface Caller {
  (ask: Ask): Promise<Asked>;
  /** Writes the body of a call now, so that sending it later does no work of that kind in this process. */
  prepare(ask: Ask): () => Promise<Asked>;
}

/** Creates what the calls need, relays first, and returns the function that makes them. */
export async function openCaller(access: FilledAccess): Promise<Caller> {
  let approval = APPROVAL;
  let capture = CAPTURE;
  const wideEvent = eventId(LAST_WIDE_EVENT, access.firstMs);
  const prepare = (asked: Ask) => {
    const { path: written, method = "GET", bytes, status: wanted } = asked;
    const path = written
      .replace(APPROVAL, approval)
      .replace(CAPTURE, capture)
      .replace(WIDE_EVENT, wideEvent)
      .replace(OTHER_EVENT, (_, turn: string) => eventId(LAST_WIDE_EVENT - 1 - Number(turn), access.firstMs));
    const text = writeBody(asked)?.replace(WIDE_EVENT, wideEvent) ?? null;
    const init = { method, headers: headersFor(path, access), body: bytes ?? text };
    return async (): Promise<Asked> => {
      const response = await fetch(access.url + path, init);
      const { status } = response;
      return { status, text: await readWhole(response), isExpected: wanted === undefined ? status < 300 : status === wanted };
    };
  };
  const ask: Caller = Object.assign((asked: Ask) => prepare(asked)(), { prepare });
  const must = async (method: string, path: string, body: unknown): Promise<string> => {
    const { isExpected, status, text } = await ask({ method, path, body });
    if (!isExpected) throw new Error(`${method} ${path} got status ${status}: ${text.slice(0, 500)}`);
    return text;
  };
  await createRelays(must);
  for (const name of ["book", "gone"]) await must("PUT", `${E}/products/${name}`, { title: name, credits: 1 });
  for (const name of ["pro", "old"]) await must("PUT", `${E}/plans/${name}`, { title: name });
  const { relays } = SYNCED[0] ?? {};
  const { plan } = JSON.parse(await must("POST", `${E}/sync/plan`, { relays, to: "production" })) as { plan: string };
  const asked = JSON.parse(await must("POST", `${E}/approvals`, { relays, plan })) as { approval: { id: string } };
  approval = asked.approval.id;
  const opened = JSON.parse(await must("POST", `${E}/captures`, {})) as { capture: { id: string; url: string } };
  const { pathname } = new URL(opened.capture.url);
  for (const body of ['{"a":1}', "b".repeat(250_000), "c".repeat(250_000)]) await must("POST", pathname, body);
  capture = opened.capture.id;
  return ask;
}

function headersFor(path: string, { url, session, secret, app, person }: FilledAccess): Record<string, string> {
  if (path.startsWith("/client/")) return { "x-app-key": app, "x-person-session": person };
  // Keys create and revoke no keys, so a member does.
  const byMember = path.startsWith(`${E}/keys`);
  if (path.startsWith(E) && !byMember) return { authorization: `Bearer ${secret}` };
  if (path.startsWith("/hooks/")) return { "x-token": TOKEN };
  return { cookie: `relay_session=${session}`, origin: url };
}

async function createRelays(must: (method: string, path: string, body: unknown) => Promise<string>): Promise<void> {
  const write = { type: "write_record", collection: "wide", data: { text: "x" } };
  const names = ["busy", ...Array.from({ length: 18 }, (_, at) => (at < 10 ? `busy${at}` : `gone${at - 10}`))];
  await Promise.all(names.map((name) => must("POST", `${E}/relays`, { definition: { ...definition([write]), name } })));
  const large = Object.fromEntries(Array.from({ length: 18 }, (_, at) => [`name${at}`, "large"]));
  const verify = { scheme: "signature", header: "x-signature", signedPayload: "{body}" };
  const missed = { name: "missed", trigger: { kind: "receiver", verify, map: { event_id: "id", ...large } }, actions: [write] };
  await must("POST", `${E}/relays`, { definition: missed, secret: TOKEN });
  // An import offers each line to all followers.
  for (let nth = 0; nth < MAX_FOLLOWERS; nth++)
    await must("POST", `${E}/relays`, {
      definition: { ...missed, name: `missed${nth}`, trigger: { ...missed.trigger, verify: { scheme: "receiver", receiver: "missed" } } },
    });
  const trigger = { kind: "data_change", collection: "watched", on: ["created", "updated", "deleted"] };
  await must("POST", `${E}/relays`, { definition: { name: "watcher", trigger, actions: [write] } });
}
