/** `relay apps list`: every app with its environments. */
import { listApps } from "../account/app.ts";
import { listEnvironments } from "../account/environment.ts";
import { toIso } from "../ground/clock.ts";
import type { Command } from "./command.ts";
import { JSON_OUTPUT, withStore } from "./data-directory.ts";
import { DATA_DIR } from "./service-option.ts";
import { sayList } from "./table.ts";

export const appsList: Command = {
  words: ["apps", "list"],
  summary: "list the apps of a data directory",
  options: [JSON_OUTPUT, DATA_DIR],
  async run(input, world) {
    const items = await withStore(input, world, (store) =>
      store.read(async (tx) => {
        const environments = await listEnvironments(tx, null);
        return (await listApps(tx)).map((app) => ({
          id: app.id,
          name: app.name,
          environments: environments.filter(({ appId }) => appId === app.id).map(({ name }) => name),
          createdAt: toIso(app.createdAt),
        }));
      }),
    );
    sayList(world, {
      json: input.on("json"),
      items,
      headings: ["ID", "NAME", "ENVIRONMENTS", "CREATED"],
      row: (app) => [app.id, app.name, app.environments.join(", "), app.createdAt],
      none: "No apps yet: relay apps create <name> makes one.",
    });
    return 0;
  },
};
