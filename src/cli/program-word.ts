/** How the person calls this program, so that a line they are shown can be pasted: by its name, or by the package script of a checkout. */
import type { World } from "./world.ts";

/** `relay`, `npm run relay --` or `bun run relay`. */
export function programWord({ env }: World): string {
  const script = env.npm_lifecycle_event;
  if (script !== "start" && script !== "relay") return "relay";
  return env.npm_config_user_agent?.startsWith("bun") === true ? "bun run relay" : "npm run relay --";
}
