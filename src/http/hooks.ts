/**
 * The receiver's route. It reads the bytes, at most 256 KB and only for a receiver that exists, hands them to the receiver, and renders
 * its answer. The hot path: no schema, no parsing, no hook of the framework touches a call.
 */
import { Elysia } from "elysia";
import { MAX_RECEIVER_BODY_BYTES } from "../ground/limit.ts";
import { Refusal } from "../ground/refusal.ts";
import type { Receiver } from "../receiver/receive.ts";
import { readBytes } from "./body.ts";
import { answerError } from "./error.ts";
import { requireOneReading } from "./host.ts";
import type { HttpRooms } from "./rooms.ts";
import type { SourceReader } from "./source.ts";

export interface HookRooms {
  http: HttpRooms;
  receiver: Receiver;
  source: SourceReader;
}

/** `POST /hooks/:appId/:name` */
export function hooksRoute({ http, receiver, source }: HookRooms) {
  return new Elysia({ name: "hooks" }).post(
    "/hooks/:appId/:name",
    async ({ request, params, server }) => {
      let known: string | null = null;
      const from = (): string => {
        if (known !== null) return known;
        const peer = server?.requestIP(request)?.address ?? null;
        known = source.sourceOf(peer, request.headers.get("x-forwarded-for"));
        return known;
      };
      const { appId, name } = params;
      try {
        requireOneReading(request, params);
        await receiver.requireReceiver(appId, name, from);
        const reader = { room: http.bodies, source: from };
        const body = await readBytes(request, MAX_RECEIVER_BODY_BYTES, reader).catch(
          async (error: unknown) => {
            throw error instanceof Refusal ? await receiver.refuseUnread(appId, name, from(), error) : error;
          },
        );
        const answer = await receiver.receive({
          appId,
          name,
          headers: request.headers,
          body,
          search: appendedTo(`/hooks/${appId}/${name}`, request.url),
          source: from,
        });
        return Response.json(answer, ANSWERED);
      } catch (error) {
        return answerError(http, request, error);
      }
    },
    { parse: "none" },
  );
}

const ANSWERED: ResponseInit = { headers: { "cache-control": "no-store" } };

/** What was appended to the receiver's path: a query string, a bare "?", a slash. */
function appendedTo(path: string, url: string): string {
  const at = url.indexOf("/hooks/");
  return url.startsWith(path, at) ? url.slice(at + path.length) : url;
}
