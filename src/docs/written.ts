/**
 * The pages that people wrote, in docs/ of the repository: one file a page, one line here. The executable carries their text. Where a page
 * has `<!-- fill: name -->`, what a registry says stands in its place.
 */
import docker from "../../docs/docker.md" with { type: "text" };
import errors from "../../docs/errors.md" with { type: "text" };
import firstHour from "../../docs/first-hour.md" with { type: "text" };
import installServer from "../../docs/install-server.md" with { type: "text" };
import offSiteBackups from "../../docs/off-site-backups.md" with { type: "text" };
import trustedProxy from "../../docs/trusted-proxy.md" with { type: "text" };
import upgrade from "../../docs/upgrade.md" with { type: "text" };
import { type DocPage, readPage } from "./page.ts";

const FILES: Readonly<Record<string, string>> = {
  errors,
  "first-hour": firstHour,
  docker,
  "install-server": installServer,
  "off-site-backups": offSiteBackups,
  "trusted-proxy": trustedProxy,
  upgrade,
};

const FILL = /^<!-- fill: ([a-z-]+) -->$/gm;

/** Throws where a page asks for what no registry gives. */
export function readWrittenPages(fills: Readonly<Record<string, () => string>>): DocPage[] {
  return Object.entries(FILES).map(([id, file]) => {
    const page = readPage(id, file);
    const text = page.text.replaceAll(FILL, (_, name: string) => {
      const fill = fills[name];
      if (fill === undefined) throw new Error(`docs/${id}.md asks for ${name}, which nothing gives.`);
      return fill().trim();
    });
    return { ...page, text };
  });
}
