/**
 * Serves the dashboard: its hashed files for ever, its page for every other address a browser opens, with the same strict headers.
 * A compiled executable carries the files and the HTML import is their manifest; run from source, the same import
 * only names the page, which is bundled once, when first asked for. Both ways end in the same list of files.
 */
import { basename } from "node:path";
import icon from "../../../web/icon.svg" with { type: "text" };
import page from "../../../web/index.html";
import { addressOf } from "./address.ts";
import { answerFile, FOREVER, makeFile, type PageFile } from "./page-file.ts";

const NOT_PAGES = /^\/(api|hooks|client|docs)(\/|$)/;

/** The answer to a GET or HEAD that no route took, or null where it is not the dashboard's: let it be 404. */
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

/** The tab's icon with how many things need somebody; ten stands for more than nine. */
function makeIcon(count: number): PageFile {
  const words = count > 9 ? "9+" : String(count);
  const badge = `<circle cx="22" cy="10" r="10" fill="#c4303d"/><text x="22" y="15" font-family="sans-serif" font-size="14" font-weight="700" text-anchor="middle" fill="#fff">${words}</text>`;
  const bytes = new TextEncoder().encode(icon.replace("</svg>", `${badge}</svg>`));
  return makeFile({ name: `icon-${count}.svg`, contentType: "image/svg+xml", bytes });
}

/** Deep links are the page's own; a missing file or a program's call is not one. */
function isPageAddress(request: Request, pathname: string): boolean {
  // Below an app's place a name may hold a dot, as an address does.
  if (!pathname.startsWith("/apps/") && /\.\w+$/.test(pathname)) return false;
  const accept = request.headers.get("accept") ?? "";
  return pathname === "/" || accept.includes("text/html");
}

interface PageFiles {
  /** The page itself, for every address of the dashboard. */
  index: PageFile;
  /** Everything it loads, by path; names hold a hash of their content. */
  assets: ReadonlyMap<string, PageFile>;
}

interface Bundled {
  name: string;
  contentType: string;
  isIndex?: boolean;
  bytes: Uint8Array<ArrayBuffer>;
}

let loaded: Promise<PageFiles> | undefined;

/** The dashboard's files, read or bundled once for the process; a bundle that failed is tried again. */
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
