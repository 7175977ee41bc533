/** The two places where an owner's command works the same: in a server's data directory, and over the network with a key. */
import type { Io } from "../../src/interfaces/cli/io.ts";
import { type CommandResult, runCommand } from "./cli-io.ts";
import type { RunningService } from "./running-service.ts";

export const COMMAND_PLACES = ["beside the server", "at the server"] as const;
type CommandPlace = (typeof COMMAND_PLACES)[number];

/** Runs one command there, on the service's clock. */
export function runAt(
  place: CommandPlace,
  { dataDir, service, keys, clock, commandEnv }: RunningService,
  words: readonly string[],
  input = "",
  more: Partial<Pick<Io, "interactive" | "confirm" | "screen">> = {},
): Promise<CommandResult> {
  const [line, env] =
    place === "beside the server" ? [["--data-dir", dataDir], commandEnv] : [["--url", service.url], { RELAY_KEY: keys.development ?? "" }];
  return runCommand([...words, ...line], { cwd: dataDir, clock, env, input, ...more });
}
