/**
 * A road to PostgreSQL that breaks: it reads what is said on it, as far as whose connection it is and where a transaction ends, so that it can
 * break exactly there; it can fall silent, with nobody told; and it can be closed to whoever comes.
 */
import { connect, createServer, type Socket } from "node:net";

/** Of a connection that is lost at its commit: the server never hears of it, or it ends the transaction and nobody hears of that. */
type Loss = "unsent" | "unheard";

interface Road extends Disposable {
  url: string;
  /** Nothing comes through any more, and nobody is told; `name`: of connections that the service calls so, otherwise of all. */
  cut(name?: string): void;
  /** Connections that the service calls so are lost. */
  drop(name: string): void;
  /** How many connections there were so far that the service calls so. */
  count(name: string): number;
  /** What was silent is lost now; others may come. */
  mend(): void;
  /** Whoever comes is refused. */
  isClosed: boolean;
  /** Connections that the service calls so are refused as they begin. */
  closedTo: string | null;
  /** What the server says is passed on as this returns it; null: as it is. */
  rewrite: ((said: Buffer) => Buffer) | null;
  /** The same of what is said to the server. */
  rewriteAsked: ((said: Buffer) => Buffer) | null;
  /** Asked at each commit with all that was said in its transaction; null: it comes through. */
  loseCommit: (said: string) => Loss | null;
}

/** One connection. */
interface Way {
  near: Socket;
  far: Socket;
  name: string;
  isSilent: boolean;
  /** The client's first message, and those before it, have no type. */
  hasBegun: boolean;
  /** What came of a message. */
  rest: Buffer;
  said: string;
  isLost: boolean;
  /** What the client calls its statement that commits, and what was said of it until it is to be done. */
  commit: string | null;
  held: Buffer[];
}

/** `near`: the port that it begins at; 0: a free one. */
export async function openRoad(databaseUrl: string, { near: nearPort = 0 }: { near?: number } = {}): Promise<Road> {
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
    if (road.isClosed) return void near.destroy();
    const far = connect(Number(port), hostname);
    const begun = { name: "", isSilent: isCut, hasBegun: false, rest: Buffer.alloc(0), said: "", isLost: false, commit: null, held: [] };
    const way: Way = { near, far, ...begun };
    ways.add(way);
    far.on("error", () => drop(way));
    for (const socket of [near, far]) socket.on("close", () => (way.isSilent ? undefined : drop(way)));
    near.on("data", (asked: Buffer) => {
      if (way.isSilent || way.isLost) return;
      const chunk = road.rewriteAsked?.(asked) ?? asked;
      const hadName = way.name !== "";
      const loss = passOn(way, chunk, road.loseCommit);
      if (!hadName && way.name !== "") names.push(way.name);
      if (loss === "unsent" || way.name === road.closedTo) drop(way);
      way.isLost = loss === "unheard";
    });
    far.on("data", (chunk: Buffer) => {
      if (way.isLost && chunk.includes("COMMIT\0")) drop(way);
      else if (!way.isSilent) near.write(road.rewrite?.(chunk) ?? chunk);
    });
  });
  await new Promise<void>((resolve) => server.listen(nearPort, "127.0.0.1", resolve));
  const url = new URL(databaseUrl);
  const address = server.address();
  url.hostname = "127.0.0.1";
  url.port = String(typeof address === "object" ? address?.port : "");
  const road: Road = {
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
    count: (name) => names.filter((one) => one === name).length,
    mend() {
      isCut = false;
      for (const way of [...ways]) if (way.isSilent) drop(way);
    },
    [Symbol.dispose]() {
      for (const way of [...ways]) drop(way);
      server.close();
    },
  };
  return road;
}

const BEGIN_VERSION = 196_608;

/** Whole messages go on as they are; answers how the connection is lost with the last of them. */
function passOn(way: Way, chunk: Buffer, loseCommit: Road["loseCommit"]): Loss | null {
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
