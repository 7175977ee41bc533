/**
 * Serves the dashboard with strict headers: its hashed files with unlimited caching, and its page at every other address that a browser opens. A
 * compiled executable contains the files, and the HTML import is their manifest. When run from source, the import only names the page, which is
 * bundled at its first request. Both produce the same list of files.
 */
import { basename } from "node:path";
import icon from "../../../web/icon.svg" with { type: "text" };
import page from "../../../web/index.html";
import { addressOf } from "./address.ts";
import { answerFile, FOREVER, makeFile, type PageFile } from "./page-file.ts";

const NOT_PAGES = /^\/(api|hooks|client|docs)(\/|$)/;

/** Answers a GET or HEAD without a route. Returns null if the address is not the dashboard's, which becomes 404. */
export async function answerDashboard(request: Request): Promise<Response | null> {
  const { pathname } = addressOf(request);
  if (NOT_PAGES.test(pathname)) return null;
  const { index, assets } = await loadPageFiles();
  const asset = assets.get(pathname);
  if (asset !== undefined) return answerFile(request, asset, FOREVER);
  const count = COUNTED_ICON.exec(pathname)?.[1];
  if (count !== undefined) return answerFile(request, makeIcon(Number(count)), FOREVER);
  return isPageAddress(request, pathname) ? answerFile(request, index, "no-cache") : null;
}

const COUNTED_ICON = /^\/icon-([1-9]|10)\.svg$/;

/** Creates the tab's icon with the number of problems that need attention; ten means more than nine. */
function makeIcon(count: number): PageFile {
  const words = count > 9 ? "9+" : String(count);
  const badge = `<circle cx="22" cy="10" r="10" fill="#c4303d"/><text x="22" y="15" font-family="sans-serif" font-size="14" font-weight="700" text-anchor="middle" fill="#fff">${words}</text>`;
  const bytes = new TextEncoder().encode(icon.replace("</svg>", `${badge}</svg>`));
  return makeFile({ name: `icon-${count}.svg`, contentType: "image/svg+xml", bytes });
}

/** Returns true for deep links, which the page handles. A missing file or a program's request is not one. */
function isPageAddress(request: Request, pathname: string): boolean {
  // Below an app's address, a name can contain a dot, as an email address does.
  if (!pathname.startsWith("/apps/") && /\.\w+$/.test(pathname)) return false;
  const accept = request.headers.get("accept") ?? "";
  return pathname === "/" || accept.includes("text/html");
}

interface PageFiles {
  /** The page, served at every address of the dashboard. */
  index: PageFile;
  /** The files that the page loads, by path. Their names contain a hash of their content. */
  assets: ReadonlyMap<string, PageFile>;
}

interface Bundled {
  name: string;
  contentType: string;
  isIndex?: boolean;
  bytes: Uint8Array<ArrayBuffer>;
}

let loaded: Promise<PageFiles> | undefined;

/** Reads or bundles the dashboard's files once for the process. A failed bundle is retried. */
function loadPageFiles(): Promise<PageFiles> {
  loaded ??= load().catch((error: unknown) => {
    loaded = undefined;
    throw error;
  });
  return loaded;
}

async function load(): Promise<PageFiles> {
  const bundled = page.files === undefined ? await bundleFromSource() : await readEmbedded(page.files);
  const index = bundled.find(({ isIndex }) => isIndex);
  if (index === undefined) throw new Error("The dashboard's page is missing from the bundle.");
  const assets = new Map(
    bundled.filter((file) => file !== index).map((file) => [`/${file.name}`, makeFile(file)]),
  );
  return { index: makeFile(index), assets };
}

async function readEmbedded(files: NonNullable<typeof page.files>): Promise<Bundled[]> {
  return await Promise.all(
    files.map(async ({ path, loader, headers }) => ({
      name: basename(path),
      contentType: headers["content-type"],
      isIndex: loader === "html",
      bytes: await Bun.file(path).bytes(),
    })),
  );
}

async function bundleFromSource(): Promise<Bundled[]> {
  const built = await Bun.build({
    entrypoints: [page.index],
    minify: true,
    splitting: true,
    publicPath: "/",
    throw: false,
  });
  if (!built.success) throw new Error(`The dashboard cannot be bundled: ${built.logs.join(" ")}`);
  return await Promise.all(
    built.outputs.map(async (output) => ({
      name: basename(output.path),
      contentType: output.type,
      isIndex: output.path.endsWith(".html"),
      bytes: new Uint8Array(await output.arrayBuffer()),
    })),
  );
}
