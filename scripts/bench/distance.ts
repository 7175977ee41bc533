/** Puts a database at a distance: a proxy passes each answer on after a delay, so each round trip takes that much longer. */
import { connect, createServer, type Socket } from "node:net";

interface Distance extends Disposable {
  url: string;
  /** How much longer a round trip takes. It is 0 at first, so that a warm-up need not wait. */
  delayMs: number;
}

/** Opens the proxy. It keeps the order of the answers, and many can be on the way at once. */
export async function openDistance(databaseUrl: string): Promise<Distance> {
  const { hostname, port } = new URL(databaseUrl);
  const open = new Set<Socket>();
  const server = createServer((near) => {
    const far = connect(Number(port), hostname);
    near.setNoDelay(true);
    far.setNoDelay(true);
    const end = (): void => {
      for (const socket of [near, far]) {
        open.delete(socket);
        socket.destroy();
      }
    };
    for (const socket of [near, far]) {
      open.add(socket);
      socket.on("error", end).on("close", end);
    }
    near.on("data", (asked: Buffer) => far.write(asked));
    // Timers of one delay end in the order in which they began.
    far.on("data", (answer: Buffer) => {
      if (distance.delayMs === 0) near.write(answer);
      else setTimeout(() => near.write(answer), distance.delayMs);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = new URL(databaseUrl);
  const address = server.address();
  url.hostname = "127.0.0.1";
  url.port = String(typeof address === "object" ? address?.port : "");
  const distance: Distance = {
    url: url.href,
    delayMs: 0,
    [Symbol.dispose]() {
      for (const socket of open) socket.destroy();
      server.close();
    },
  };
  return distance;
}
