/** Serves the dashboard: its hashed files for ever, its page for every other address a browser opens, with the same strict headers. */
import { addressOf } from "./address.ts";
import { loadPageFiles, type PageFile } from "./page-file.ts";
import { PAGE_HEADERS } from "./security-header.ts";

const NOT_PAGES = /^\/(api|hooks|client|docs)(\/|$)/;
const FOREVER = "public, max-age=31536000, immutable";

/** The answer to a GET or HEAD that no route took, or null where it is not the dashboard's: let it be 404. */
export async function answerDashboard(request: Request): Promise<Response | null> {
  const { pathname } = addressOf(request);
  if (NOT_PAGES.test(pathname)) return null;
  const { index, assets } = await loadPageFiles();
  const asset = assets.get(pathname);
  if (asset !== undefined) return answerFile(request, asset, FOREVER);
  return isPageAddress(request, pathname) ? answerFile(request, index, "no-cache") : null;
}

/** Deep links are the page's own; a missing file or a program's call is not one. */
function isPageAddress(request: Request, pathname: string): boolean {
  if (/\.\w+$/.test(pathname)) return false;
  const accept = request.headers.get("accept") ?? "";
  return pathname === "/" || accept.includes("text/html");
}

function answerFile(request: Request, file: PageFile, cacheControl: string): Response {
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
  return new Response(bytes, { headers });
}
