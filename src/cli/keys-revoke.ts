/** `relay keys revoke`: ends a key at once and for good. */

import { revokeApiKey } from "../account/api-key.ts";
import { actorWords, COMMAND_LINE } from "../account/owner.ts";
import { writeAudit } from "../watch/audit.ts";
import type { Command } from "./command.ts";
import { APP, chooseEnvironment, ENVIRONMENT, withStore } from "./data-directory.ts";
import { DATA_DIR } from "./service-option.ts";

export const keysRevoke: Command = {
  words: ["keys", "revoke"],
  summary: "revoke an API key, at once and for good",
  arguments: [{ name: "key id", help: "as relay keys list shows it" }],
  options: [APP, ENVIRONMENT, DATA_DIR],
  async run(input, world) {
    const nowMs = world.clock.now();
    const key = await withStore(input, world, (store) =>
      store.write("dashboard", async (tx) => {
        const environment = await chooseEnvironment(tx, input);
        const revoked = await revokeApiKey(tx, environment.id, input.first(), nowMs);
        await writeAudit(tx, {
          environmentId: environment.id,
          atMs: nowMs,
          actor: actorWords(COMMAND_LINE),
          action: "key.revoked",
          target: `key:${revoked.id}`,
          before: { kind: revoked.kind, name: revoked.name, hint: revoked.hint },
        });
        return revoked;
      }),
    );
    world.tell(`The key ${key.hint} (${key.name}) is revoked.`);
    return 0;
  },
};
