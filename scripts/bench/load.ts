/**
 * Sends signed webhooks over keep-alive connections. Each connection sends its next request after the response to the last one. Bodies have 387
 * bytes and distinct event ids. Prints one JSON line: { calls, ok, seconds, perSecond, p50Ms, p99Ms, statuses }. With --turns it makes one load
 * for each line of its input, { servers, seconds, connections?, limit? }, so that its own code is compiled once for all of them. The connections
 * are spread over the servers, { port, paths } each.
 *
 * bun scripts/bench/load.ts --port 1234 --path /hooks/a/b --secret s --seconds 5 --connections 64 [--prefix x] [--rate 1000]
 * bun scripts/bench/load.ts --secret s --connections 64 --turns
 */
import { createHmac } from "node:crypto";
import { parseArgs } from "node:util";

const { values } = parseArgs({
  options: {
    port: { type: "string" },
    path: { type: "string", multiple: true },
    secret: { type: "string" },
    seconds: { type: "string", default: "5" },
    connections: { type: "string", default: "64" },
    prefix: { type: "string", default: "evt" },
    limit: { type: "string" },
    rate: { type: "string" },
    turns: { type: "boolean", default: false },
  },
});
const secret = values.secret ?? "bench";
/** Requests a second; infinite if each connection sends as fast as it gets responses. */
const rate = values.rate === undefined ? Number.POSITIVE_INFINITY : Number(values.rate);
const BODY_BYTES = 387;

let stopping = false;
process.on("SIGTERM", () => {
  stopping = true;
});

interface Server {
  port: number;
  paths: readonly string[];
}

interface Turn {
  servers: readonly [Server, ...Server[]];
  seconds: number;
  connections?: number;
  /** Number of requests after which the load ends. */
  limit?: number;
}

interface Connection {
  sentAt: number;
  pending: string;
}

class Load {
  readonly #turn: Turn;
  readonly #statuses = new Map<string, number>();
  readonly #latencies: number[] = [];
  readonly #begun = performance.now();
  #made = 0;
  #answered = 0;

  constructor(turn: Turn) {
    this.#turn = turn;
  }

  async run(): Promise<string> {
    const { servers, connections = Number(values.connections) } = this.#turn;
    const runs = Array.from({ length: connections }, (_, at) =>
      this.#runConnection(servers[at % servers.length] ?? servers[0]),
    );
    await Promise.all(runs);
    const took = (performance.now() - this.#begun) / 1000;
    const [ok, sorted] = [this.#statuses.get("200") ?? 0, this.#latencies.toSorted((a, b) => a - b)];
    const at = (share: number): number =>
      Math.round((sorted[Math.floor(sorted.length * share)] ?? 0) * 100) / 100;
    return JSON.stringify({
      calls: this.#answered,
      ok,
      seconds: Math.round(took * 100) / 100,
      perSecond: Math.round(ok / took),
      p50Ms: at(0.5),
      p99Ms: at(0.99),
      statuses: Object.fromEntries(this.#statuses),
    });
  }

  #makeCall({ port, paths }: Server): Uint8Array {
    this.#made += 1;
    const id = `${values.prefix}_${crypto.randomUUID()}`;
    const head = `{"id":"${id}","type":"order.paid","amount":4200,"email":"ada@example.com","note":"`;
    const body = `${head}${"x".repeat(BODY_BYTES - head.length - 2)}"}`;
    const signature = createHmac("sha256", secret).update(body).digest("hex");
    const path = paths[this.#made % paths.length];
    return Buffer.from(
      `POST ${path} HTTP/1.1\r\nhost: 127.0.0.1:${port}\r\ncontent-type: application/json\r\nx-signature: ${signature}\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
    );
  }

  /** Adds a chunk and returns true when the response is complete. */
  #take(connection: Connection, chunk: string): boolean {
    connection.pending += chunk;
    const end = connection.pending.indexOf("\r\n\r\n");
    if (end === -1) return false;
    const length = Number(/content-length: (\d+)/i.exec(connection.pending.slice(0, end))?.[1] ?? 0);
    if (connection.pending.length < end + 4 + length) return false;
    const status = connection.pending.slice(9, 12);
    this.#statuses.set(status, (this.#statuses.get(status) ?? 0) + 1);
    connection.pending = connection.pending.slice(end + 4 + length);
    this.#latencies.push(performance.now() - connection.sentAt);
    this.#answered += 1;
    return true;
  }

  async #runConnection(server: Server): Promise<void> {
    const { seconds, limit = Number.POSITIVE_INFINITY } = this.#turn;
    const deadline = this.#begun + seconds * 1000;
    await new Promise<void>((resolve, reject) => {
      void Bun.connect<Connection>({
        hostname: "127.0.0.1",
        port: server.port,
        socket: {
          open: (socket) => {
            socket.data = { sentAt: performance.now(), pending: "" };
            socket.write(this.#makeCall(server));
          },
          data: (socket, chunk) => {
            if (!this.#take(socket.data, chunk.toString("latin1"))) return;
            if (stopping || performance.now() >= deadline || this.#made >= limit) {
              socket.end();
              resolve();
              return;
            }
            const send = (): void => {
              socket.data.sentAt = performance.now();
              socket.write(this.#makeCall(server));
            };
            const early = this.#begun + (1_000 * this.#made) / rate - performance.now();
            if (early > 1) setTimeout(send, early);
            else send();
          },
          close: () => resolve(),
          error: (_socket, error) => reject(error),
        },
      }).catch(reject);
    });
  }
}

if (values.turns) {
  for await (const line of console)
    if (line !== "") console.log(await new Load(JSON.parse(line) as Turn).run());
} else {
  const { port, path: paths = ["/"], limit } = values;
  const turn = { servers: [{ port: Number(port), paths }] as const, seconds: Number(values.seconds) };
  console.log(await new Load(limit === undefined ? turn : { ...turn, limit: Number(limit) }).run());
}
