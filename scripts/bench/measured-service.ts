/** The bench's side of a service that reports what its main thread did (loop-watch.ts). */
import { join } from "node:path";
import { serverCommand } from "./pin.ts";

const ENDS_WITHIN_MS = 15_000;

type Word = "cpu" | "watch" | "worst" | "calibrate";

export interface MeasuredService<Ready> extends AsyncDisposable {
  ready: Ready;
  tell(word: Word): Promise<number>;
}

/** Starts a script of this folder. Its first line is JSON. */
export async function startMeasured<Ready>(
  script: string,
  ...args: string[]
): Promise<MeasuredService<Ready>> {
  const child = Bun.spawn(serverCommand([process.execPath, join(import.meta.dir, script), ...args]), {
    stdin: "pipe",
    stdout: "pipe",
    stderr: "inherit",
  });
  const nextLine = readLines(child.stdout);
  return {
    ready: JSON.parse(await nextLine()) as Ready,
    async tell(word) {
      child.stdin.write(`${word}\n`);
      await child.stdin.flush();
      return Number(await nextLine());
    },
    async [Symbol.asyncDispose]() {
      await child.stdin.end();
      const timer = setTimeout(() => child.kill("SIGKILL"), ENDS_WITHIN_MS);
      await child.exited;
      clearTimeout(timer);
    },
  };
}

/** Returns the slowness that scales the bar of a time: 1 if the time meets the unscaled bar, otherwise the service's slowness now. */
export async function slownessFor(
  service: Pick<MeasuredService<unknown>, "tell">,
  ms: number,
  barMs: number,
): Promise<number> {
  return ms <= barMs ? 1 : await service.tell("calibrate");
}

/** Returns a function that reads the next line of a stream. */
function readLines(stream: ReadableStream<Uint8Array>): () => Promise<string> {
  const reader = stream.getReader();
  const decoder = new TextDecoder();
  let text = "";
  return async () => {
    while (!text.includes("\n")) {
      const { value, done } = await reader.read();
      if (done) throw new Error("The service ended before it answered.");
      text += decoder.decode(value, { stream: true });
    }
    const end = text.indexOf("\n");
    const line = text.slice(0, end);
    text = text.slice(end + 1);
    return line;
  };
}
