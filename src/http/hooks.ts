/**
 * The receiver's route. It reads the bytes, at most 256 KB and only for a receiver that exists, hands them to the receiver, and renders
 * its answer. The hot path: no schema, no parsing, no hook of the framework touches a call.
 */
import { Elysia } from "elysia";
import { MAX_RECEIVER_BODY_BYTES } from "../ground/limit.ts";
import { Refusal } from "../ground/refusal.ts";
import type { Receiver } from "../receiver/receive.ts";
import { readBytes, readDeclared } from "./body.ts";
import { answerError } from "./error.ts";
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
      const from = (): string =>
        source.sourceOf(server?.requestIP(request)?.address ?? null, request.headers.get("x-forwarded-for"));
      try {
        await receiver.requireReceiver(params.appId, params.name, from);
        const body = await readBody(request, () =>
          receiver.refuseTooLarge(params.appId, params.name, from()),
        );
        const answer = await receiver.receive({
          appId: params.appId,
          name: params.name,
          headers: request.headers,
          body,
          search: appendedTo(`/hooks/${params.appId}/${params.name}`, request.url),
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

/** A declared length is read in one go; an undeclared one piece by piece, up to the limit. */
async function readBody(request: Request, tooLarge: () => Promise<Error>): Promise<Uint8Array> {
  const declared = request.headers.get("content-length");
  if (declared !== null) {
    if (Number(declared) > MAX_RECEIVER_BODY_BYTES) throw await tooLarge();
    return await readDeclared(request);
  }
  try {
    return await readBytes(request, MAX_RECEIVER_BODY_BYTES);
  } catch (error) {
    throw error instanceof Refusal && error.code === "body_too_large" ? await tooLarge() : error;
  }
}

/** What was appended to the receiver's path: a query string, a bare "?", a slash. */
function appendedTo(path: string, url: string): string {
  const at = url.indexOf("/hooks/");
  return url.startsWith(path, at) ? url.slice(at + path.length) : url;
}
