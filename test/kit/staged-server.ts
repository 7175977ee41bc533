/**
 * The compiled executable as a server whose clock the test moves, and nothing else of it: what is staged and read back goes by HTTP, by the
 * management API and by the log on standard error, as a stranger has them. Many apps share one; what concerns a whole server has its own.
 */
import { Database } from "bun:sqlite";
import { join } from "node:path";
import { parseJson } from "../../src/base/json.ts";
import type { Authority } from "./certificate.ts";
import { LIMITED_DISK_SPACE, setDiskSpace } from "./disk-space.ts";
import type { Executable, StartedExecutable } from "./executable.ts";
import { START_MS } from "./virtual-clock.ts";

const STAGED_ORIGIN = "https://relay.example.test";
const OWNER = { email: "owner@example.com", password: "correct horse battery staple" };
/** An answer that nobody reads holds its connection open for so long of the server's clock. */
const UNREAD_MS = 10_000;

export interface Answer {
  status: number;
  // biome-ignore lint/suspicious/noExplicitAny: a test reads into answers of any shape and asserts what it finds
  body: any;
}

/** A server that calls may be made to, over https with the authority's certificate; answers with `status`. */
export interface Called extends AsyncDisposable {
  url: string;
  status: number;
}

export function startCalled(authority: Authority): Called {
  const called = { url: "", status: 200, [Symbol.asyncDispose]: () => server.stop(true) };
  const tls = authority.issue(["localhost"]);
  const server = Bun.serve({ port: 0, hostname: "127.0.0.1", tls, fetch: () => new Response("taken", { status: called.status }) });
  called.url = `https://localhost:${server.port}/notice`;
  return called;
}

export class StagedServer implements AsyncDisposable {
  readonly #executable: Executable;
  readonly #env: Record<string, string>;
  readonly #cwd: string;
  #process: StartedExecutable | null = null;
  #earlier: string[] = [];
  #moves = 0;
  #cookie = "";
  nowMs = START_MS;

  /** `authorityFile`: whose certificates calls trust. */
  static async start(executable: Executable, authorityFile: string, env: Record<string, string> = {}): Promise<StagedServer> {
    const server = new StagedServer(executable, { NODE_EXTRA_CA_CERTS: authorityFile, ...env });
    await server.begin();
    await server.#signIn();
    return server;
  }

  private constructor(executable: Executable, env: Record<string, string>) {
    this.#executable = executable;
    this.#env = env;
    this.#cwd = executable.makeFolder();
  }

  get url(): string {
    return this.#running.url;
  }

  /** The log's lines so far. */
  get log(): string[] {
    return [...this.#earlier, ...(this.#process?.told.lines ?? [])];
  }

  get #running(): StartedExecutable {
    if (this.#process === null) throw new Error("The server does not run now.");
    return this.#process;
  }

  /** Starts it on what an earlier one left. */
  async begin(): Promise<void> {
    const line = ["serve", "--base-url", STAGED_ORIGIN, "--log-format", "json", "--allow-private", "localhost"];
    const env = { ...this.#env, STAGED_NOW_MS: String(this.nowMs) };
    this.#moves = 0;
    this.#process = await this.#executable.start(line, { cwd: this.#cwd, env, through: process.platform === "linux" ? LIMITED_DISK_SPACE : [] });
  }

  /** Stops it in order; its clock goes on only as far as that needs. */
  async stop(): Promise<void> {
    const running = this.#running;
    const ended = running.end("SIGTERM").then(() => true);
    while (!(await Promise.race([ended, Bun.sleep(500).then(() => false)]))) running.write(`advance ${UNREAD_MS}`);
    this.#earlier = this.log;
    this.#process = null;
  }

  /** SIGKILL, whatever it does. */
  async kill(): Promise<void> {
    await this.#running.end("SIGKILL");
    this.#earlier = this.log;
    this.#process = null;
  }

  /** What its database holds, while it is stopped. */
  alter(sql: string, ...values: string[]): void {
    using database = new Database(join(this.#cwd, ".relay", "relay.db"));
    database.run(sql, values);
  }

  /** Takes the disk's room from it, or gives it back. */
  setDiskSpace(room: "none" | "any"): void {
    setDiskSpace(this.#running.pid, room);
  }

  /** Moves its clock: `advance` fires every timer on the way, `leap` is of days. */
  async move(word: "advance" | "leap", ms: number): Promise<void> {
    this.nowMs += ms;
    this.#moves += 1;
    const { said } = this.#running;
    this.#running.write(`${word} ${ms}`);
    await said.waitForCount("clock ", this.#moves);
  }

  async #signIn(): Promise<void> {
    const token = (await this.#running.said.waitFor("Set-up")).split("#")[1]?.split(/\s/)[0] ?? "";
    const response = await this.fetch("/api/setup", { method: "POST", body: JSON.stringify({ token, ...OWNER }) });
    this.#cookie = response.headers
      .getSetCookie()
      .map((cookie) => cookie.split(";")[0])
      .join("; ");
    if (response.status !== 201) throw new Error(`No owner was made: ${await response.text()}`);
  }

  /** Makes an app and a secret key of each environment. */
  async makeApp(id: string): Promise<{ development: string; production: string }> {
    await this.#asOwner("/api/apps", { id, name: id });
    const mint = async (name: string): Promise<string> => (await this.#asOwner(`/api/apps/${id}/${name}/keys`, { name: "test" })).token;
    return { development: await mint("development"), production: await mint("production") };
  }

  async #asOwner(path: string, body: object): Promise<Answer["body"]> {
    const answer = await readAnswer(await this.fetch(path, { method: "POST", body: JSON.stringify(body) }));
    if (answer.status !== 201) throw new Error(`${path} answered ${JSON.stringify(answer)}`);
    return answer.body;
  }

  /** With the owner's session, unless the headers hold a key. */
  fetch(path: string, init: RequestInit & { headers?: Record<string, string> } = {}): Promise<Response> {
    const signed = init.headers?.authorization === undefined ? { cookie: this.#cookie, origin: STAGED_ORIGIN } : {};
    return fetch(`${this.url}${path}`, { ...init, headers: { "content-type": "application/json", ...signed, ...init.headers } });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#process?.[Symbol.asyncDispose]();
  }
}

export async function readAnswer(response: Response): Promise<Answer> {
  const text = await response.text();
  try {
    return { status: response.status, body: parseJson(text) };
  } catch {
    return { status: response.status, body: text };
  }
}
