/** `relay ready`: whether the server beside it is ready, by its exit code: what a container's health check and a script that waits ask. */
import { isJsonObject, parseJson } from "../ground/json.ts";
import { nearHost, originOf } from "../ground/listening.ts";
import { type Command, CommandFailure } from "./command.ts";
import { DEFAULT_PORT, HOST, PORT } from "./service-option.ts";

const TIMEOUT_MS = 5_000;

export const ready: Command = {
  words: ["ready"],
  summary: "whether the server on this machine is ready",
  details:
    "Exit code 0 when it is, 1 when not. It asks /readyz of the address that --host and --port name, as relay serve was started with: a write reaches the disk and the runner is alive. For a health check where there is no curl.",
  options: [
    { ...HOST, help: "the address it listens on" },
    { ...PORT, help: "the port it listens on" },
  ],
  examples: ["relay ready", "until relay ready --port 4747; do sleep 1; done"],
  async run(input, world) {
    const port = input.number("port", { from: 1, to: 65_535 }) ?? DEFAULT_PORT;
    const url = originOf(nearHost(input.text("host") ?? "127.0.0.1"), port);
    const answer = await ask(`${url}/readyz`);
    if (answer === null)
      throw new CommandFailure(
        "service_not_running",
        `Nothing answers at ${url}: start relay serve, or name its address with --host and --port.`,
      );
    if (answer.ok) {
      world.say("ready");
      return;
    }
    throw new CommandFailure("service_not_running", `The server at ${url} is not ready. ${answer.problem}`);
  },
};

async function ask(url: string): Promise<{ ok: boolean; problem: string } | null> {
  try {
    // It is on this machine, whatever its address: a proxy of the environment's (HTTP_PROXY) would answer for itself.
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
