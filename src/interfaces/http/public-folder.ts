/**
 * Serves the service folder's public/ at /public/ in local development, to try a page with g.js. Such a page runs any script, so it needs its own
 * origin. Only the name localhost serves it, and the dashboard accepts no session under that name (cookie.ts). Hidden files and links to files
 * outside the folder are not served. The folder itself can be a link to another folder within the service folder.
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
/**
 * Ignores the pages that the plugin lists by absolute path when it is created, because it cuts them at their length of that time. The path of a
 * request is relative, like `assets`.
 */
const LISTED_PAGES = /^(?:\/|[A-Za-z]:)/;

const HEADERS = {
  "cache-control": "no-store",
  "x-content-type-options": "nosniff",
  "cross-origin-resource-policy": "same-origin",
  "content-security-policy": "frame-ancestors 'self'",
};

type StaticApp = Awaited<ReturnType<typeof staticPlugin>>;

export class PublicFolder {
  readonly #serviceDir: string;
  readonly #folder: string;
  #plugin: { assets: string; app: Promise<StaticApp> } | null = null;

  constructor(serviceDir: string) {
    this.#serviceDir = serviceDir;
    this.#folder = join(serviceDir, "public");
  }

  /** Answers a GET or HEAD of an address below /public. Returns null for another address. Throws the refusal `not_found`. */
  async answer(request: Request): Promise<Response | null> {
    const { pathname, search } = addressOf(request);
    if (pathname !== PREFIX && !pathname.startsWith(`${PREFIX}/`)) return null;
    if (!isPagesHost(request)) return redirect(`http://${pagesHost(request)}${pathname}${search}`);
    if (leadsOutside(this.#serviceDir, this.#folder)) throw outside();
    const root = await realpath(this.#folder).catch(() => null);
    if (root === null || !(await stat(root)).isDirectory()) throw missing();
    const file = pathname === PREFIX ? null : await this.#findFile(root, pathname.slice(PREFIX.length + 1));
    if (file === null) return redirect(`${pathname}/${search}`);
    const path = file.split(sep).map(encodeURIComponent).join("/");
    const app = await this.#openPlugin(root);
    const answer = await app.handle(new Request(`http://localhost${PREFIX}/${path}`));
    if (!answer.ok) throw missing();
    return answer;
  }

  /**
   * Finds the real path of a file, relative to the root. A path that ends in a slash means the index.html of that folder. Returns null if the
   * path names a folder and does not end in a slash. Throws the refusal `not_found`.
   */
  async #findFile(root: string, rest: string): Promise<string | null> {
    const names = rest.split("/").map(readName);
    const wanted = join(root, ...names);
    const real = await realpath(wanted).catch(() => null);
    if (real === null || !isShown(relative(root, real))) throw missing();
    const found = await stat(real);
    const endsInSlash = names.at(-1) === "";
    if (found.isFile() && !endsInSlash) return relative(root, real);
    if (!found.isDirectory()) throw missing();
    return endsInSlash ? await this.#findFile(root, `${rest}index.html`) : null;
  }

  /** Creates the plugin at the first request, and again if the folder changes. */
  async #openPlugin(root: string): Promise<StaticApp> {
    const assets = relative(process.cwd(), root);
    if (this.#plugin?.assets !== assets) {
      const options = { assets, prefix: PREFIX, etag: false, decodeURI: true, alwaysStatic: false };
      const app = staticPlugin({ ...options, ignorePatterns: [LISTED_PAGES], headers: HEADERS });
      this.#plugin = { assets, app };
      // The plugin reads the whole folder once. If that fails, a later request retries.
      app.catch(() => {
        this.#plugin = null;
      });
    }
    return await this.#plugin.app;
  }
}

/** Decodes one name of the path. Throws `not_found` for a hidden name, a parent folder and an invalid name. */
function readName(part: string): string {
  try {
    const name = decodeURIComponent(part);
    if (!name.startsWith(".") && !/[/\\\0]/.test(name)) return name;
  } catch {
    // The name is not UTF-8, so no file has it.
  }
  throw missing();
}

/** Returns true if a path relative to the folder stays in it and has no hidden name. */
function isShown(path: string): boolean {
  return !isAbsolute(path) && path.split(sep).every((name) => !name.startsWith("."));
}

function outside(): Refusal {
  return new Refusal(
    "not_found",
    "The service folder's public/ is a link to a folder outside it, so Relay does not follow it: replace the link with a folder that has the files.",
  );
}

function missing(): Refusal {
  return new Refusal(
    "not_found",
    "The service folder's public/ has no such file: put it there and open this address again.",
  );
}
