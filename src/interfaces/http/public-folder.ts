/**
 * In local development: what stands in the service folder's public/ at /public/, so that a page with g.js can be tried at once. Such a page
 * runs whatever script it likes, so it has an origin of its own: it is served under the name localhost alone, where no session of the
 * dashboard is taken (cookie.ts). Nothing hidden, and nothing that a link leads to outside of the folder, is served; nothing is kept. The
 * folder itself may be a link to a folder within the service folder, and to no other.
 */
import { realpath, stat } from "node:fs/promises";
import { isAbsolute, join, relative, sep } from "node:path";
import { staticPlugin } from "@elysiajs/static";
import { Refusal } from "../../base/refusal.ts";
import { leadsOutside } from "../../operator/sync/own-folder.ts";
import { addressOf } from "./address.ts";
import { redirect } from "./answer.ts";
import { isPagesHost, pagesHost } from "./cookie.ts";

const PREFIX = "/public";
/** The plugin lists pages by their absolute paths when it is made and cuts them off at the length they had then; others it reads when asked. */
const LISTED = /^(?:\/|[A-Za-z]:)/;

const HEADERS = {
  "cache-control": "no-store",
  "x-content-type-options": "nosniff",
  "cross-origin-resource-policy": "same-origin",
  "content-security-policy": "frame-ancestors 'self'",
};

type Files = Awaited<ReturnType<typeof staticPlugin>>;

export class PublicFolder {
  readonly #serviceDir: string;
  readonly #folder: string;
  #files: { of: string; app: Promise<Files> } | null = null;

  constructor(serviceDir: string) {
    this.#serviceDir = serviceDir;
    this.#folder = join(serviceDir, "public");
  }

  /** The answer to a GET or HEAD of an address below /public, or null for any other address. Refuses with `not_found`. */
  async answer(request: Request): Promise<Response | null> {
    const { pathname, search } = addressOf(request);
    if (pathname !== PREFIX && !pathname.startsWith(`${PREFIX}/`)) return null;
    if (!isPagesHost(request)) return redirect(`http://${pagesHost(request)}${pathname}${search}`);
    if (leadsOutside(this.#serviceDir, this.#folder)) throw outside();
    const root = await realpath(this.#folder).catch(() => null);
    if (root === null || !(await stat(root)).isDirectory()) throw missing();
    const file = pathname === PREFIX ? null : await this.#find(root, pathname.slice(PREFIX.length + 1));
    if (file === null) return redirect(`${pathname}/${search}`);
    const path = file.split(sep).map(encodeURIComponent).join("/");
    const files = await this.#open(root);
    const answer = await files.handle(new Request(`http://localhost${PREFIX}/${path}`));
    if (!answer.ok) throw missing();
    return answer;
  }

  /** The file's own path in the folder, a folder's being its index.html; null: a folder without a slash behind it. */
  async #find(root: string, rest: string): Promise<string | null> {
    const names = rest.split("/").map(readName);
    const wanted = join(root, ...names);
    const real = await realpath(wanted).catch(() => null);
    if (real === null || !isShown(relative(root, real))) throw missing();
    const found = await stat(real);
    const endsInSlash = names.at(-1) === "";
    if (found.isFile() && !endsInSlash) return relative(root, real);
    if (!found.isDirectory()) throw missing();
    return endsInSlash ? await this.#find(root, `${rest}index.html`) : null;
  }

  async #open(root: string): Promise<Files> {
    const assets = relative(process.cwd(), root);
    if (this.#files?.of !== assets) {
      const options = { assets, prefix: PREFIX, etag: false, decodeURI: true, alwaysStatic: false };
      const app = staticPlugin({ ...options, ignorePatterns: [LISTED], headers: HEADERS });
      this.#files = { of: assets, app };
      // It looks through the whole folder once; what was in its way then may be gone when it is asked again.
      app.catch(() => {
        this.#files = null;
      });
    }
    return await this.#files.app;
  }
}

/** One name of the path. Refuses what is hidden, climbs, or is no name. */
function readName(part: string): string {
  try {
    const name = decodeURIComponent(part);
    if (!name.startsWith(".") && !/[/\\\0]/.test(name)) return name;
  } catch {
    // No text in UTF-8: no file is called so.
  }
  throw missing();
}

/** Whether a path that starts at the folder stays in it and names nothing hidden. */
function isShown(path: string): boolean {
  return !isAbsolute(path) && path.split(sep).every((name) => !name.startsWith("."));
}

function outside(): Refusal {
  return new Refusal(
    "not_found",
    "The service folder's public/ is a link to a folder outside of it, so it is not followed: replace the link with a folder that holds the files.",
  );
}

function missing(): Refusal {
  return new Refusal(
    "not_found",
    "There is no such file in the service folder's public/: put it there and open this address again.",
  );
}
