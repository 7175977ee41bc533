/**
 * The compiled executable as a server whose clock the test moves. Tests stage failures and read the results over HTTP, the management API and the log
 * on stderr, as an operator does. Many apps share one server. A failure of a whole server gets a separate one.
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
/** A response that no client reads holds its connection open for this long on the server's clock. */
const UNREAD_MS = 10_000;

export interface Answer {
  status: number;
  // biome-ignore lint/suspicious/noExplicitAny: a test reads into answers of any shape and asserts what it finds
  body: any;
}

/** A server that the service may call, over https with the authority's certificate. It answers with `status`. */
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

  /** Starts a server. `authorityFile` has the authority whose certificates its calls trust. */
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

  /** Starts the server on the data of an earlier process. */
  async begin(): Promise<void> {
    const line = ["serve", "--base-url", STAGED_ORIGIN, "--log-format", "json", "--allow-private", "localhost"];
    const env = { ...this.#env, STAGED_NOW_MS: String(this.nowMs) };
    this.#moves = 0;
    this.#process = await this.#executable.start(line, { cwd: this.#cwd, env, through: process.platform === "linux" ? LIMITED_DISK_SPACE : [] });
  }

  /** Stops the server gracefully. Its clock moves only as far as that needs. */
  async stop(): Promise<void> {
    const running = this.#running;
    const ended = running.end("SIGTERM").then(() => true);
    while (!(await Promise.race([ended, Bun.sleep(500).then(() => false)]))) running.write(`advance ${UNREAD_MS}`);
    this.#earlier = this.log;
    this.#process = null;
  }

  /** Kills the server with SIGKILL at any moment. */
  async kill(): Promise<void> {
    await this.#running.end("SIGKILL");
    this.#earlier = this.log;
    this.#process = null;
  }

  /** Changes the database while the server is stopped. */
  alter(sql: string, ...values: string[]): void {
    using database = new Database(join(this.#cwd, ".relay", "relay.db"));
    database.run(sql, values);
  }

  /** Takes all disk space from the server, or gives it back. */
  setDiskSpace(room: "none" | "any"): void {
    setDiskSpace(this.#running.pid, room);
  }

  /** Moves the server's clock. `advance` fires every timer on the way, and `leap` is for days. */
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

  /** Creates an app and a secret key for each environment. */
  async makeApp(id: string): Promise<{ development: string; production: string }> {
    // The clock may have moved by more than the 15 minutes of an authentication.
    const confirmed = await this.fetch("/api/session/confirm", { method: "POST", body: JSON.stringify({ password: OWNER.password }) });
    if (confirmed.status !== 200) throw new Error(`The owner was not confirmed: ${await confirmed.text()}`);
    await this.#asOwner("/api/apps", { id, name: id });
    const mint = async (name: string): Promise<string> => (await this.#asOwner(`/api/apps/${id}/${name}/keys`, { name: "test" })).token;
    return { development: await mint("development"), production: await mint("production") };
  }

  async #asOwner(path: string, body: object): Promise<Answer["body"]> {
    const answer = await readAnswer(await this.fetch(path, { method: "POST", body: JSON.stringify(body) }));
    if (answer.status !== 201) throw new Error(`${path} answered ${JSON.stringify(answer)}`);
    return answer.body;
  }

  /** Sends a request with the owner's session, unless the headers contain a key. */
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
