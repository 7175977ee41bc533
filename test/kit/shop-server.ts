/** Starts a server with an owner and the app `shop`, as a person starts it in a terminal. */

import { runCommand } from "./cli-io.ts";
import { startCli } from "./cli-process.ts";

interface ShopServer {
  /** The origin of the server. */
  base: string;
  /** A key for the development environment of `shop`. */
  key: string;
}

/** The server ends with `stack`. `home` is the folder of its data. */
export async function startShopServer(
  stack: AsyncDisposableStack,
  home: string,
  { email, password }: { email: string; password: string },
): Promise<ShopServer> {
  const server = stack.use(startCli(["serve", "--port", "0"], { cwd: home }));
  const base = `http://127.0.0.1:${/127\.0\.0\.1:(\d+)/.exec(await server.line("127.0.0.1:"))?.[1]}`;
  await runCommand(["admin", "create", "--email", email, "--password-stdin"], { cwd: home, input: password });
  await runCommand(["apps", "create", "Shop", "--id", "shop"], { cwd: home });
  const made = await runCommand(["keys", "create", "--app", "shop", "--environment", "development", "--name", "laptop"], { cwd: home });
  return { base, key: /relay_dev_\w+/.exec(`${made.said} ${made.told}`)?.[0] ?? "" };
}
