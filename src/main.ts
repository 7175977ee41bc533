/** The executable: joins the command line to the service, and exits with the command's code. */

import { runCommandLine } from "./cli/run.ts";
import { processWorld } from "./cli/world.ts";
import { startService } from "./service.ts";

const world = processWorld({ startService });

runCommandLine(process.argv.slice(2), world).then((code) => {
  process.exitCode = code;
});
