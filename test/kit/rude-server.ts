/**
 * An HTTP server that misbehaves, in a separate process. `bun rude-server.ts <manner>` prints its port and reads notices over connections that stay
 * open. It counts every complete notice by its id, and GET returns the counts.
 *
 * - closes: closes a connection some random milliseconds after a response, even during a request
 * - half-closes: closes its side of the connection in the same way, but continues to read
 * - resets: reads every notice, but resets the connection without a response for one in five
 * - drips: answers in pieces some milliseconds apart, and breaks off one response in ten in its middle
 */
import { createServer, type Socket } from "node:net";

const [manner = "closes"] = process.argv.slice(2);
/** Counts how often each notice was read, and how often it got no complete response. */
const read: Record<string, number> = {};
const dropped: Record<string, number> = {};
let connections = 0;

const soon = (most: number, work: () => void): void => void setTimeout(work, Math.random() * most);

function answer(socket: Socket, id: string): void {
  const pieces = ["HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"];
  if (manner === "drips") {
    pieces.splice(0, 1, "HTTP/1.1 2", "00 OK\r\ncontent-le", "ngth: 2\r\n\r\n", "o", "k");
    if (Math.random() < 0.1) pieces.splice(Math.floor(Math.random() * 4) + 1);
  }
  const isWhole = pieces.at(-1)?.endsWith("k") === true;
  const next = (): void => {
    socket.write(pieces.shift() ?? "");
    if (pieces.length > 0) soon(2, next);
    else if (!isWhole) drop(socket, id);
    else if (manner.endsWith("closes") && Math.random() < 0.5) soon(6, () => (manner === "closes" ? socket.destroy() : socket.end()));
  };
  next();
}

function drop(socket: Socket, id: string): void {
  dropped[id] = (dropped[id] ?? 0) + 1;
  socket.resetAndDestroy();
}

function take(socket: Socket, body: string): void {
  const { id } = JSON.parse(body) as { id: string };
  read[id] = (read[id] ?? 0) + 1;
  if (socket.writableEnded || (manner === "resets" && Math.random() < 0.2)) drop(socket, id);
  else answer(socket, id);
}

const server = createServer({ allowHalfOpen: true }, (socket) => {
  let pending = "";
  connections += 1;
  socket.on("error", () => {});
  socket.on("end", () => socket.end());
  socket.on("data", (chunk) => {
    pending += chunk.toString("latin1");
    for (;;) {
      const end = pending.indexOf("\r\n\r\n");
      if (end === -1) return;
      if (pending.startsWith("GET")) {
        const counts = JSON.stringify({ read, dropped, connections });
        socket.end(`HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: ${counts.length}\r\n\r\n${counts}`);
        return;
      }
      const length = Number(/content-length: (\d+)/i.exec(pending.slice(0, end))?.[1]);
      if (pending.length < end + 4 + length) return;
      const body = pending.slice(end + 4, end + 4 + length);
      pending = pending.slice(end + 4 + length);
      take(socket, body);
    }
  });
});
server.listen(0, "127.0.0.1", () => {
  const address = server.address();
  process.stdout.write(`${typeof address === "object" ? address?.port : ""}\n`);
});
