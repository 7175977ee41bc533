/**
 * A file for browsers, served without changes. Its hash and its compressed form are created once. The response depends on what the browser has
 * and accepts.
 */
import { PAGE_HEADERS } from "./answer.ts";

export interface PageFile {
  /** The path of the file, for example `/chunk-6s2w38xg.js`. */
  path: string;
  contentType: string;
  etag: string;
  bytes: Uint8Array<ArrayBuffer>;
  /** The compressed file if it is smaller, otherwise null. */
  gzip: Uint8Array<ArrayBuffer> | null;
}

/** The caching of a file whose name contains a hash of its content. */
export const FOREVER = "public, max-age=31536000, immutable";

const COMPRESSED = /^(text\/|application\/(json|javascript|manifest)|image\/svg)/;

export function makeFile({
  name,
  contentType,
  bytes,
}: {
  name: string;
  contentType: string;
  bytes: Uint8Array<ArrayBuffer>;
}): PageFile {
  const gzip = COMPRESSED.test(contentType) ? Bun.gzipSync(bytes) : null;
  const smaller = gzip !== null && gzip.byteLength < bytes.byteLength ? gzip : null;
  return { path: `/${name}`, contentType, etag: `"${Bun.hash(bytes).toString(36)}"`, bytes, gzip: smaller };
}

export function answerFile(request: Request, file: PageFile, cacheControl: string, status = 200): Response {
  const headers: Record<string, string> = {
    ...PAGE_HEADERS,
    "content-type": file.contentType,
    "cache-control": cacheControl,
    etag: file.etag,
    vary: "accept-encoding",
  };
  if (request.headers.get("if-none-match")?.includes(file.etag))
    return new Response(null, { status: 304, headers });
  const zipped = file.gzip !== null && /\bgzip\b/.test(request.headers.get("accept-encoding") ?? "");
  const bytes = zipped && file.gzip !== null ? file.gzip : file.bytes;
  if (zipped) headers["content-encoding"] = "gzip";
  headers["content-length"] = String(bytes.byteLength);
  return new Response(bytes, { status, headers });
}
