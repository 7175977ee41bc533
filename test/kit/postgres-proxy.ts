/**
 * A TCP proxy in front of PostgreSQL that fails on request. It reads the messages as far as the name of the connection and the end of a
 * transaction, so it can drop a connection exactly at a commit, go silent, or refuse new connections.
 */
import { connect, createServer, type Socket } from "node:net";

/** The kind of loss of a connection at its commit: the server never gets the commit, or it commits and the client gets no answer. */
type Loss = "unsent" | "unheard";

interface PostgresProxy extends Disposable {
  url: string;
  /** Silences all connections, or those with this application name: passes nothing on and closes nothing. */
  cut(name?: string): void;
  /** Drops the connections with this application name. */
  drop(name: string): void;
  /** Counts the connections so far with this application name. */
  count(name: string): number;
  /**
   * Keeps what the clients of the connections with this application name send from now on. `count` counts these bytes. `drop` drops the clients.
   * `deliver` then sends to the server what was kept, and resolves when the server has ended these connections.
   */
  delay(name: string): { count(): number; drop(): void; deliver(): Promise<void> };
  /** Drops the silent connections, and accepts new ones. */
  reconnect(): void;
  /** Refuses new connections. */
  isClosed: boolean;
  /** Refuses new connections with this application name. */
  closedTo: string | null;
  /** Changes what the server sends; null: passes it on unchanged. */
  rewrite: ((said: Buffer) => Buffer) | null;
  /** Changes what the client sends; null: passes it on unchanged. */
  rewriteAsked: ((said: Buffer) => Buffer) | null;
  /** Decides at each commit, by all messages of its transaction, how the connection is lost; null: it is not. */
  loseCommit: (said: string) => Loss | null;
}

/** One connection. */
interface Way {
  near: Socket;
  far: Socket;
  name: string;
  isSilent: boolean;
  /** The bytes that the client sent, if they are kept. */
  kept: Buffer[] | null;
  /** True if the client's startup message has passed. It and the messages before it have no type. */
  hasBegun: boolean;
  /** The part of an incomplete message that has arrived. */
  rest: Buffer;
  said: string;
  isLost: boolean;
  /** The client's name for its prepared COMMIT, and the messages that wait until it runs. */
  commit: string | null;
  held: Buffer[];
}

/** Opens the proxy. `near` is its port; 0 selects a free one. */
export async function openPostgresProxy(databaseUrl: string, { near: nearPort = 0 }: { near?: number } = {}): Promise<PostgresProxy> {
  const { hostname, port } = new URL(databaseUrl);
  const ways = new Set<Way>();
  const names: string[] = [];
  let isCut = false;
  const drop = (way: Way): void => {
    ways.delete(way);
    way.near.destroy();
    way.far.destroy();
  };
  const server = createServer((near) => {
    near.on("error", () => undefined);
    if (proxy.isClosed) return void near.destroy();
    const far = connect(Number(port), hostname);
    const begun = { name: "", isSilent: isCut, kept: null, hasBegun: false, rest: Buffer.alloc(0), said: "", isLost: false, commit: null, held: [] };
    const way: Way = { near, far, ...begun };
    ways.add(way);
    far.on("error", () => drop(way));
    for (const socket of [near, far]) socket.on("close", () => (way.isSilent || way.kept !== null ? undefined : drop(way)));
    near.on("data", (asked: Buffer) => {
      if (way.isSilent || way.isLost) return;
      if (way.kept !== null) return void way.kept.push(asked);
      const chunk = proxy.rewriteAsked?.(asked) ?? asked;
      const hadName = way.name !== "";
      const loss = passOn(way, chunk, proxy.loseCommit);
      if (!hadName && way.name !== "") names.push(way.name);
      if (loss === "unsent" || way.name === proxy.closedTo) drop(way);
      way.isLost = loss === "unheard";
    });
    far.on("data", (chunk: Buffer) => {
      if (way.isLost && chunk.includes("COMMIT\0")) drop(way);
      else if (!way.isSilent) near.write(proxy.rewrite?.(chunk) ?? chunk);
    });
  });
  await new Promise<void>((resolve) => server.listen(nearPort, "127.0.0.1", resolve));
  const url = new URL(databaseUrl);
  const address = server.address();
  url.hostname = "127.0.0.1";
  url.port = String(typeof address === "object" ? address?.port : "");
  const proxy: PostgresProxy = {
    url: url.href,
    isClosed: false,
    closedTo: null,
    rewrite: null,
    rewriteAsked: null,
    loseCommit: () => null,
    cut(name) {
      isCut = name === undefined;
      for (const way of ways) way.isSilent ||= isCut || way.name === name;
    },
    drop(name) {
      for (const way of [...ways]) if (way.name === name) drop(way);
    },
    delay(name) {
      const delayed = [...ways].filter((way) => way.name === name);
      for (const way of delayed) way.kept = [];
      return {
        count: () => delayed.reduce((sum, { kept }) => sum + (kept ?? []).reduce((all, { length }) => all + length, 0), 0),
        drop() {
          for (const { near } of delayed) near.destroy();
        },
        async deliver() {
          const ended = delayed.map(({ far }) => new Promise((resolve) => far.once("close", resolve)));
          for (const { far, kept } of delayed) far.resume().end(Buffer.concat(kept ?? []));
          await Promise.all(ended);
        },
      };
    },
    count: (name) => names.filter((one) => one === name).length,
    reconnect() {
      isCut = false;
      for (const way of [...ways]) if (way.isSilent) drop(way);
    },
    [Symbol.dispose]() {
      for (const way of [...ways]) drop(way);
      server.close();
    },
  };
  return proxy;
}

const BEGIN_VERSION = 196_608;

/** Passes complete messages on unchanged. Returns how the connection is lost with the last of them. */
function passOn(way: Way, chunk: Buffer, loseCommit: PostgresProxy["loseCommit"]): Loss | null {
  way.rest = way.rest.length === 0 ? chunk : Buffer.concat([way.rest, chunk]);
  for (;;) {
    const { rest } = way;
    const typed = way.hasBegun ? 1 : 0;
    if (rest.length < typed + 4) return null;
    const end = typed + rest.readInt32BE(typed);
    if (rest.length < end) return null;
    const message = rest.subarray(0, end);
    way.rest = rest.subarray(end);
    if (!way.hasBegun) {
      way.hasBegun = message.readInt32BE(4) === BEGIN_VERSION;
      way.name = /application_name\0([^\0]*)/.exec(message.toString("latin1"))?.[1] ?? "";
    }
    const text = message.toString("utf8", 5);
    const type = typed === 0 ? "" : message.toString("latin1", 0, 1);
    const [first = "", second = ""] = text.split("\0", 2);
    if (type === "P" && second === "COMMIT") way.commit = first;
    if (way.held.length > 0 || (type === "B" && second === way.commit)) way.held.push(message);
    const isCommit = (type === "Q" && text.startsWith("COMMIT")) || (type === "S" && way.held.length > 0);
    if (way.held.length > 0 && !isCommit) continue;
    const loss = isCommit ? loseCommit(way.said) : null;
    way.said = isCommit ? "" : way.said + text;
    if (loss !== "unsent") for (const one of way.held.length > 0 ? way.held : [message]) way.far.write(one);
    way.held = [];
    if (loss !== null) return loss;
  }
}
