/** Loads a server at full speed after a warm-up, and measures the CPU that the server used for the load. */
import type { Round } from "./figure.ts";
import type { Run } from "./measure.ts";
import { type LoadResult, load, SECRET, type Started } from "./process.ts";

/** The only path of every bare server. */
export const BARE_PATHS = ["/hooks/bench/orders-0"];

export type Loaded = LoadResult & Round;

/** Loads a server after a warm-up. The product and its limit both get it, although the product has more code to compile. */
export async function loadWarm(
  server: Started<unknown>,
  port: number,
  paths: readonly string[],
  { seconds, warmUpSeconds }: Pick<Run, "seconds" | "warmUpSeconds">,
): Promise<Loaded> {
  await load(port, paths, SECRET, { seconds: warmUpSeconds });
  const before = await server.cpuMs();
  const result = await load(port, paths, SECRET, { seconds });
  const cpuMicros = (1_000 * ((await server.cpuMs()) - before)) / result.ok;
  return { ...result, cpuMicros };
}
