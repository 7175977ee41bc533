/** `relay keys list`: the keys of an environment, by what may be shown of them. */
import { listApiKeys, viewKey } from "../account/api-key.ts";
import type { Command } from "./command.ts";
import { APP, chooseEnvironment, ENVIRONMENT, JSON_OUTPUT, withStore } from "./data-directory.ts";
import { DATA_DIR } from "./service-option.ts";
import { sayList } from "./table.ts";

export const keysList: Command = {
  words: ["keys", "list"],
  summary: "list an environment's API keys",
  options: [APP, ENVIRONMENT, JSON_OUTPUT, DATA_DIR],
  async run(input, world) {
    const items = await withStore(input, world, (store) =>
      store.read(async (tx) => (await listApiKeys(tx, (await chooseEnvironment(tx, input)).id)).items),
    );
    sayList(world, {
      json: input.on("json"),
      items: items.map(viewKey),
      headings: ["ID", "KIND", "KEY", "NAME", "LAST USED", "STATE"],
      row: (key) => [
        key.id,
        key.kind,
        key.hint,
        key.name,
        key.lastUsedAt ?? "never",
        key.revokedAt === null ? "live" : "revoked",
      ],
      none: "No keys yet: relay keys create makes one.",
    });
    return 0;
  },
};
