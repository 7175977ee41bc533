/** Reports by its exit code whether the server on this machine is ready (`relay ready`). Health checks of containers and scripts that wait use it. */
import { isJsonObject, parseJson } from "../../../base/json.ts";
import { nearHost, originOf } from "../../../base/listening.ts";
import { type Command, CommandFailure, type Input } from "../command.ts";
import { readNearUrl } from "../data-directory.ts";
import type { Io } from "../io.ts";
import { DATA_DIR, DEFAULT_PORT, HOST, PORT, readDataDir } from "../service-option.ts";
import { askNearServer } from "./near-server.ts";

export const ready: Command = {
  words: ["ready"],
  summary: "check that the server on this machine is ready",
  details:
    "The exit code is 0 if the server is ready, otherwise 1. The command asks /readyz at --host and --port, or at the address of the service on the data directory. Ready means that a write reaches the disk and the runner works. Use it for health checks on machines that have no curl.",
  options: [
    {
      ...HOST,
      otherwise: "the host of the service on the data directory, else 127.0.0.1",
      help: "the address where the server listens",
    },
    {
      ...PORT,
      otherwise: `the port of the service on the data directory, else ${DEFAULT_PORT}`,
      help: "the port where the server listens",
    },
    { ...DATA_DIR, help: "the data directory of the service" },
  ],
  examples: ["relay ready", "until relay ready --port 4747; do sleep 1; done"],
  async run(input, io) {
    const { url, by } = findAddress(input, io);
    const answer = await askNearServer(`${url}/readyz`);
    if (answer === null)
      throw new CommandFailure(
        "service_not_running",
        `Nothing answers at ${url}${by}: start relay serve or relay dev, or name its address with --host and --port.`,
      );
    if (answer.status === 200) {
      io.print("ready");
      return;
    }
    throw new CommandFailure(
      "service_not_running",
      `The server at ${url} is not ready. ${readProblem(answer.text)}`,
    );
  },
};

/** Finds the address: from the options, otherwise from the note of the data directory's service, otherwise the default. */
function findAddress(input: Input, io: Io): { url: string; by: string } {
  const port = input.number("port", { from: 1, to: 65_535 });
  const host = input.text("host");
  const dataDir = readDataDir(input, io);
  const lastUrl = port === null && host === null ? readNearUrl(dataDir) : null;
  if (lastUrl !== null) return { url: lastUrl, by: `, the last address of the service on ${dataDir}` };
  return { url: originOf(nearHost(host ?? "127.0.0.1"), port ?? DEFAULT_PORT), by: "" };
}

function readProblem(text: string): string {
  try {
    const answer = parseJson(text);
    return isJsonObject(answer) && typeof answer.problem === "string" ? answer.problem : "";
  } catch {
    return "Another program answers there.";
  }
}
