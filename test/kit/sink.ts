/**
 * The user's own server that call_url posts to. It stores each notice as received and answers when the test says. It checks signatures by the
 * specification only, without the service's code.
 */
import { createHmac, timingSafeEqual } from "node:crypto";

const WINDOW_SECONDS = 300;

interface SinkNotice {
  path: string;
  method: string;
  headers: Record<string, string>;
  /** The raw body. */
  body: Buffer;
}

export interface Sink extends AsyncDisposable {
  /** Origin of the server, on localhost. */
  url: string;
  notices: SinkNotice[];
  /** Resolves once `count` notices have arrived at `path`. */
  waitFor(path: string, count: number): Promise<SinkNotice[]>;
  /** Delays all responses until the returned function is called. */
  hold(): () => void;
}

/** Starts a sink on a free loopback port. */
export function startSink(): Sink {
  const notices: SinkNotice[] = [];
  let waiting: (() => void)[] = [];
  let gate = Promise.resolve();
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    idleTimeout: 60,
    async fetch(request) {
      const { method } = request;
      const path = new URL(request.url).pathname;
      const body = Buffer.from(await request.arrayBuffer());
      notices.push({ path, method, headers: Object.fromEntries(request.headers), body });
      for (const look of waiting.splice(0)) look();
      await gate;
      return new Response("taken");
    },
  });
  return {
    url: `http://localhost:${server.port}`,
    notices,
    async waitFor(path, count) {
      for (;;) {
        const found = notices.filter((notice) => notice.path === path);
        if (found.length >= count) return found;
        await new Promise<void>((resolve) => waiting.push(resolve));
      }
    },
    hold() {
      let open = (): void => undefined;
      gate = new Promise((resolve) => {
        open = resolve;
      });
      return open;
    },
    async [Symbol.asyncDispose]() {
      waiting = [];
      await server.stop(true);
    },
  };
}

/**
 * Returns whether `X-Service-Signature: t=<seconds>,v1=<hex>` is this secret's signature over `<t>.<raw body>`, made within the last five minutes.
 */
export function isNoticeSigned({ headers, body }: SinkNotice, signingSecret: string): boolean {
  const match = /^t=(\d{10}),v1=([0-9a-f]{64})$/.exec(headers["x-service-signature"] ?? "");
  if (match === null) return false;
  const [, seconds = "", hex = ""] = match;
  if (Math.abs(Date.now() / 1000 - Number(seconds)) > WINDOW_SECONDS) return false;
  const expected = createHmac("sha256", signingSecret).update(`${seconds}.`).update(body).digest();
  return timingSafeEqual(expected, Buffer.from(hex, "hex"));
}
