/** Opens the dashboard's page of an item in the browser (`--web`). */
import type { Input, Option } from "../command.ts";
import { readRunningUrl } from "../data-directory.ts";
import type { Io } from "../io.ts";
import { type Api, type Query, writeQuery } from "./api.ts";
import { withApi } from "./connect.ts";

export const WEB: Option = {
  name: "web",
  help: "open the dashboard's page in the browser, and print its address",
};

/** A page of the dashboard: the parts of its path below the environment, and its query. */
interface WebPage {
  path: readonly string[];
  query?: Query;
}

/** Opens the page that `find` returns, and prints its address. `find` refuses an item that does not exist. */
export async function openWebPage(input: Input, io: Io, find: (api: Api) => Promise<WebPage>): Promise<void> {
  await withApi("read", input, io, async (api) => {
    const { path, query = {} } = await find(api);
    const parts = ["apps", api.app, api.environment, ...path].map(encodeURIComponent);
    const address = `${api.origin}/${parts.join("/")}${writeQuery(query)}`;
    io.print(address);
    if (api.isLocal && readRunningUrl(api.url) === null)
      return io.inform(
        `No service runs on ${api.url}: start relay dev or relay serve, then open the address.`,
      );
    if (!(await io.openBrowser(address, null)))
      io.inform("No browser is available here: open the address yourself.");
  });
}
