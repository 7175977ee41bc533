/**
 * A load of signed webhook calls over keep-alive connections, each sending its next call when the last is answered. Bodies are 387 bytes
 * with distinct event ids. Prints one JSON line: { calls, ok, seconds, perSecond, p50Ms, p99Ms, statuses }.
 *
 * bun scripts/bench/load.ts --port 1234 --path /hooks/a/b --secret s --seconds 5 --connections 64 [--prefix x] [--rate 1000]
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
  },
});
const paths = values.path ?? ["/"];
const secret = values.secret ?? "bench";
const seconds = Number(values.seconds);
const limit = values.limit === undefined ? Number.POSITIVE_INFINITY : Number(values.limit);
/** Calls a second, where it is not as fast as they are answered. */
const rate = values.rate === undefined ? Number.POSITIVE_INFINITY : Number(values.rate);
const BODY_BYTES = 387;

let made = 0;
function makeCall(): Uint8Array {
  made += 1;
  const id = `${values.prefix}_${crypto.randomUUID()}`;
  const head = `{"id":"${id}","type":"order.paid","amount":4200,"email":"ada@example.com","note":"`;
  const body = `${head}${"x".repeat(BODY_BYTES - head.length - 2)}"}`;
  const signature = createHmac("sha256", secret).update(body).digest("hex");
  const path = paths[made % paths.length];
  return Buffer.from(
    `POST ${path} HTTP/1.1\r\nhost: 127.0.0.1:${values.port}\r\ncontent-type: application/json\r\nx-signature: ${signature}\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
}

const statuses = new Map<string, number>();
const latencies: number[] = [];
let answered = 0;
let stopping = false;

interface Connection {
  sentAt: number;
  pending: string;
}

function take(connection: Connection, chunk: string): boolean {
  connection.pending += chunk;
  const end = connection.pending.indexOf("\r\n\r\n");
  if (end === -1) return false;
  const length = Number(/content-length: (\d+)/i.exec(connection.pending.slice(0, end))?.[1] ?? 0);
  if (connection.pending.length < end + 4 + length) return false;
  const status = connection.pending.slice(9, 12);
  statuses.set(status, (statuses.get(status) ?? 0) + 1);
  connection.pending = connection.pending.slice(end + 4 + length);
  latencies.push(performance.now() - connection.sentAt);
  answered += 1;
  return true;
}

const begun = performance.now();
const deadline = begun + seconds * 1000;

async function runConnection(): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    void Bun.connect<Connection>({
      hostname: "127.0.0.1",
      port: Number(values.port),
      socket: {
        open(socket) {
          socket.data = { sentAt: performance.now(), pending: "" };
          socket.write(makeCall());
        },
        data(socket, chunk) {
          if (!take(socket.data, chunk.toString("latin1"))) return;
          if (stopping || performance.now() >= deadline || made >= limit) {
            socket.end();
            resolve();
            return;
          }
          const send = (): void => {
            socket.data.sentAt = performance.now();
            socket.write(makeCall());
          };
          const early = begun + (1_000 * made) / rate - performance.now();
          if (early > 1) setTimeout(send, early);
          else send();
        },
        close: () => resolve(),
        error: (_socket, error) => reject(error),
      },
    }).catch(reject);
  });
}

process.on("SIGTERM", () => {
  stopping = true;
});
await Promise.all(Array.from({ length: Number(values.connections) }, runConnection));
const took = (performance.now() - begun) / 1000;
latencies.sort((a, b) => a - b);
const at = (share: number): number =>
  Math.round((latencies[Math.floor(latencies.length * share)] ?? 0) * 100) / 100;
console.log(
  JSON.stringify({
    calls: answered,
    ok: statuses.get("200") ?? 0,
    seconds: Math.round(took * 100) / 100,
    perSecond: Math.round((statuses.get("200") ?? 0) / took),
    p50Ms: at(0.5),
    p99Ms: at(0.99),
    statuses: Object.fromEntries(statuses),
  }),
);
