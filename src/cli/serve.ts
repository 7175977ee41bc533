/** `relay serve`: the server, for any number of apps with their development and production environments. */
import { servesCookies } from "../config.ts";
import { StoreUnavailable } from "../store/port.ts";
import type { Command } from "./command.ts";
import { runService } from "./run-service.ts";
import { RUN_OPTIONS, readServiceConfig, SERVER_OPTIONS } from "./service-option.ts";
import type { RunningService, World } from "./world.ts";

export const serve: Command = {
  words: ["serve"],
  summary: "the server: apps with development and production environments",
  details:
    "Behind a proxy, name the public origin with --base-url and the proxy's address with --trusted-proxy. Limits are raised by RELAY_LIMIT_… variables, and RELAY_MASTER_KEY replaces the file master.key.",
  options: [...SERVER_OPTIONS, ...RUN_OPTIONS],
  examples: [
    "relay serve --data-dir /var/lib/relay --base-url https://relay.example.com --trusted-proxy 127.0.0.1",
  ],
  async run(input, world) {
    const config = readServiceConfig("server", input, world);
    await runService(config, input, world, async (service) => {
      world.say(`Listening  ${service.url}`);
      if (service.baseUrl !== service.url) world.say(`Public     ${service.baseUrl}`);
      if (!servesCookies(config)) {
        world.say(
          `Dashboard  nobody can sign in: on ${config.host} without --base-url a session would go over plain http; give the https origin that browsers open`,
        );
      }
      await saySetUp(service, world);
      return null;
    });
    return 0;
  },
};

/** A database that cannot be written for the moment costs the link alone: the server listens already, and goes on. */
async function saySetUp(service: RunningService, world: World): Promise<void> {
  try {
    const link = await service.makeSigninLink();
    if (link !== null) world.say(`Set-up     ${link}  (works once, within a day)`);
  } catch (error) {
    if (!(error instanceof StoreUnavailable)) throw error;
    world.say(
      "Set-up     no link could be made, because the database cannot be written now: make the first owner with relay admin create, or start the server again",
    );
  }
}
