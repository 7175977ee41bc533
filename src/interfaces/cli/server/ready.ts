/** Reports by its exit code whether the server on this machine is ready (`relay ready`). Health checks of containers and scripts that wait use it. */
import { isJsonObject, parseJson } from "../../../base/json.ts";
import { nearHost, originOf } from "../../../base/listening.ts";
import { type Command, CommandFailure, type Input } from "../command.ts";
import { readNearUrl } from "../data-directory.ts";
import type { World } from "../io.ts";
import { DATA_DIR, DEFAULT_PORT, HOST, PORT, readDataDir } from "../service-option.ts";

const TIMEOUT_MS = 5_000;

export const ready: Command = {
  words: ["ready"],
  summary: "whether the server on this machine is ready",
  details:
    "Exit code 0 when it is, 1 when not. It asks /readyz of the address that --host and --port name, as relay serve was started with, or where neither is named of the service that runs on the data directory: a write reaches the disk and the runner is alive. For a health check where there is no curl.",
  options: [
    {
      ...HOST,
      otherwise: "where the data directory's service listens, else 127.0.0.1",
      help: "the address it listens on",
    },
    {
      ...PORT,
      otherwise: `where the data directory's service listens, else ${DEFAULT_PORT}`,
      help: "the port it listens on",
    },
    { ...DATA_DIR, help: "the data directory of the service that is asked" },
  ],
  examples: ["relay ready", "until relay ready --port 4747; do sleep 1; done"],
  async run(input, world) {
    const { url, by } = findAddress(input, world);
    const answer = await ask(`${url}/readyz`);
    if (answer === null)
      throw new CommandFailure(
        "service_not_running",
        `Nothing answers at ${url}${by}: start relay serve or relay dev, or name its address with --host and --port.`,
      );
    if (answer.ok) {
      world.say("ready");
      return;
    }
    throw new CommandFailure("service_not_running", `The server at ${url} is not ready. ${answer.problem}`);
  },
};

/** Finds the address: from the options, otherwise from the note of the data directory's service, otherwise the default. */
function findAddress(input: Input, world: World): { url: string; by: string } {
  const port = input.number("port", { from: 1, to: 65_535 });
  const host = input.text("host");
  const dataDir = readDataDir(input, world);
  const noted = port === null && host === null ? readNearUrl(dataDir) : null;
  if (noted !== null) return { url: noted, by: `, where the service on ${dataDir} was started last` };
  return { url: originOf(nearHost(host ?? "127.0.0.1"), port ?? DEFAULT_PORT), by: "" };
}

async function ask(url: string): Promise<{ ok: boolean; problem: string } | null> {
  try {
    // The server is on this machine, whatever its address. A proxy from the environment (HTTP_PROXY) would answer for itself.
    const signal = AbortSignal.timeout(TIMEOUT_MS);
    const response = await fetch(url, { signal, redirect: "manual", proxy: false });
    const text = await response.text();
    return { ok: response.status === 200, problem: readProblem(text) };
  } catch {
    return null;
  }
}

function readProblem(text: string): string {
  try {
    const answer = parseJson(text);
    return isJsonObject(answer) && typeof answer.problem === "string" ? answer.problem : "";
  } catch {
    return "Something else than Relay Service answers there.";
  }
}
