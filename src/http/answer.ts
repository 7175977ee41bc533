/** Makes answers: JSON that keeps every integer exactly, or plain text, never cached unless the caller says so. */
import { writeJson } from "../ground/json.ts";
import { DATA_HEADERS } from "./security-header.ts";

type ExtraHeaders = Readonly<Record<string, string>>;

const NO_STORE = { "cache-control": "no-store" };

/** A JSON answer; bigints are written as their digits. */
export function answerJson(status: number, value: unknown, extra: ExtraHeaders = {}): Response {
  return answer(status, writeJson(value), "application/json; charset=utf-8", extra);
}

export function answerText(status: number, text: string, extra: ExtraHeaders = {}): Response {
  return answer(status, text, "text/plain; charset=utf-8", extra);
}

/** 204, nothing to say. */
export function answerEmpty(extra: ExtraHeaders = {}): Response {
  return new Response(null, { status: 204, headers: { ...DATA_HEADERS, ...NO_STORE, ...extra } });
}

function answer(status: number, body: string, contentType: string, extra: ExtraHeaders): Response {
  const headers = { ...DATA_HEADERS, ...NO_STORE, "content-type": contentType, ...extra };
  return new Response(body, { status, headers });
}
