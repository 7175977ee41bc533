/**
 * Sends requests that the server rejects, at a given rate over keep-alive connections. It sends prebuilt bytes, many requests in one write, so
 * that the sender costs this machine little. Prints one JSON line { sent, statuses, seconds } at its end.
 *
 * bun scripts/bench/flood.ts --port 1234 --path /hooks/a/b --rate 10000 --seconds 5 [--connections 64]
 */
import { parseArgs } from "node:util";
import type { Socket } from "bun";
import { MAX_PIPELINED_REQUESTS } from "../../src/base/limit.ts";

const { values } = parseArgs({
  options: {
    port: { type: "string" },
    path: { type: "string", default: "/" },
    rate: { type: "string", default: "10000" },
    seconds: { type: "string", default: "5" },
    connections: { type: "string", default: "64" },
  },
});
const rate = Number(values.rate);
const seconds = Number(values.seconds);
const EVERY_MS = 5;
/** Maximum of unanswered requests of one connection. The server closes a connection above MAX_PIPELINED_REQUESTS. Further requests are not sent. */
const MAX_OPEN = MAX_PIPELINED_REQUESTS / 2 - 4;

const body = `{"id":"evt_flood","type":"order.paid","note":"${"x".repeat(330)}"}`;
const call = Buffer.from(
  `POST ${values.path} HTTP/1.1\r\nhost: 127.0.0.1:${values.port}\r\ncontent-type: application/json\r\nx-signature: ${"0".repeat(64)}\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
);
const statuses: Record<string, number> = {};
/** Connections that the server closed. Their requests are missing, so there is no figure. */
let dropped = 0;

interface Line {
  open: number;
  rest: string;
  unsent: Buffer;
}

function count(line: Line, text: string): void {
  const whole = line.rest + text;
  let from = 0;
  for (
    let at = whole.indexOf("HTTP/1.1 ");
    at >= 0 && at + 12 <= whole.length;
    at = whole.indexOf("HTTP/1.1 ", from)
  ) {
    const status = whole.slice(at + 9, at + 12);
    statuses[status] = (statuses[status] ?? 0) + 1;
    line.open -= 1;
    from = at + 12;
  }
  line.rest = whole.slice(Math.max(from, whole.length - 12));
}

const lines: readonly Socket<Line>[] = await Promise.all(
  Array.from({ length: Number(values.connections) }, () =>
    Bun.connect<Line>({
      hostname: "127.0.0.1",
      port: Number(values.port),
      socket: {
        open(socket) {
          socket.data = { open: 0, rest: "", unsent: Buffer.alloc(0) };
        },
        data: (socket, chunk) => count(socket.data, chunk.toString("latin1")),
        close: () => {
          dropped += 1;
        },
        drain: (socket) => push(socket, Buffer.alloc(0)),
      },
    }),
  ),
);

function push(socket: Socket<Line>, bytes: Buffer): void {
  const all = socket.data.unsent.length === 0 ? bytes : Buffer.concat([socket.data.unsent, bytes]);
  const taken = Math.max(0, socket.write(all));
  socket.data.unsent = all.subarray(taken);
}

const begun = performance.now();
let sent = 0;
while (performance.now() - begun < seconds * 1000) {
  const due = Math.floor(((performance.now() - begun) / 1000) * rate);
  for (const socket of lines) {
    const wanted = Math.min(Math.ceil((due - sent) / lines.length), MAX_OPEN - socket.data.open);
    if (wanted <= 0) continue;
    push(socket, Buffer.concat(Array.from({ length: wanted }, () => call)));
    socket.data.open += wanted;
    sent += wanted;
  }
  await Bun.sleep(EVERY_MS);
}
for (let turn = 0; turn < 200 && lines.some(({ data }) => data.open > 0); turn++) await Bun.sleep(10);
if (dropped > 0) throw new Error(`The server ended ${dropped} of ${lines.length} connections of the flood.`);
console.log(JSON.stringify({ sent, statuses, seconds: (performance.now() - begun) / 1000 }));
for (const socket of lines) socket.end();
process.exit(0);
