/** A real SMTP server in this process, on loopback only. It stores the emails that it accepts. The options say where it refuses or hangs up. */
import { afterAll } from "bun:test";
import { SMTPServer, type SMTPServerOptions } from "smtp-server";
import type { Authority } from "./certificate.ts";
import { poll } from "./patience.ts";

interface Taken {
  from: string;
  to: string[];
  /** The message as received, without the escape of leading dots. */
  raw: string;
  secure: boolean;
  user: string | null;
}

export interface MailServerOptions {
  /** The security that the server offers: TLS from the first byte, STARTTLS, or neither. */
  security: "tls" | "starttls" | "none";
  authority: Authority;
  /** Names on the certificate, `localhost` by default. */
  names?: string[];
  /** The password of every user. With null, no client can sign in. */
  password?: string | null;
  /** Answers MAIL FROM, RCPT TO or the text with this error. */
  refuse?: { at: "sender" | "recipient" | "text"; code: number; message: string };
  /** Hangs up at RCPT TO, or after the whole text. */
  hangUp?: "recipient" | "text";
  /** Callbacks before RCPT TO is answered, and when the first byte of a text has arrived. */
  onRecipient?: () => Promise<void>;
  onText?: () => Promise<void>;
}

/** The stage at which the server stops answering. */
export type Hold = "none" | "greeting" | "recipient" | "text";

export interface MailServer {
  port: number;
  /** Emails whose whole text arrived and was not refused, even while the response is held. */
  taken: Taken[];
  /** Holds every later email at this stage. `letGo` answers the held ones and holds no more. */
  hold: Hold;
  held(): number;
  untilHeld(count: number): Promise<void>;
  letGo(): void;
  /** Connections so far. */
  connections(): number;
}

export async function startMailServer(options: MailServerOptions): Promise<MailServer> {
  const taken: Taken[] = [];
  const { cert, key } = options.authority.issue(options.names ?? ["localhost"]);
  const password = options.password ?? null;
  const refusal = (at: "sender" | "recipient" | "text"): Error | null =>
    options.refuse?.at === at ? Object.assign(new Error(options.refuse.message), { responseCode: options.refuse.code }) : null;
  let connections = 0;
  const held: (() => Promise<void>)[] = [];
  const holdAt = (at: Hold, goOn: () => Promise<void>): void => {
    if (made.hold === at) held.push(goOn);
    else void goOn();
  };
  const settings: SMTPServerOptions = {
    secure: options.security === "tls",
    cert,
    key,
    disabledCommands: [...(options.security === "starttls" ? [] : ["STARTTLS"]), ...(password === null ? ["AUTH"] : [])],
    authOptional: password === null,
    allowInsecureAuth: true,
    disableReverseLookup: true,
    onAuth(auth, _session, done) {
      if (auth.password === password) done(null, { user: auth.username ?? "" });
      else done(Object.assign(new Error("Invalid username or password"), { responseCode: 535 }));
    },
    onConnect(_session, done) {
      connections += 1;
      holdAt("greeting", async () => done());
    },
    onMailFrom(_address, _session, done) {
      done(refusal("sender"));
    },
    onRcptTo(_address, session, done) {
      if (options.hangUp === "recipient") hangUp(session);
      else
        holdAt("recipient", async () => {
          await options.onRecipient?.();
          done(refusal("recipient"));
        });
    },
    onData(stream, session, done) {
      const chunks: Buffer[] = [];
      let told: Promise<void> | undefined;
      stream.on("data", (chunk: Buffer) => {
        told ??= options.onText?.();
        chunks.push(chunk);
      });
      stream.on("end", () => {
        if (options.hangUp === "text") {
          hangUp(session);
          return;
        }
        const refused = refusal("text");
        const one: Taken = {
          from: session.envelope.mailFrom === false ? "" : (session.envelope.mailFrom?.address ?? ""),
          to: session.envelope.rcptTo.map(({ address }) => address),
          raw: Buffer.concat(chunks).toString(),
          secure: session.secure,
          user: typeof session.user === "string" ? session.user : null,
        };
        if (refused === null) taken.push(one);
        holdAt("text", async () => {
          await told;
          done(refused);
        });
      });
    },
  };
  const server = new SMTPServer(settings);
  const hangUp = (session: { id: string }): void => {
    for (const connection of server.connections) {
      const one = connection as unknown as { id: string; _socket: { destroy(): void } };
      if (one.id === session.id) one._socket.destroy();
    }
  };
  server.on("error", () => undefined);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  afterAll(() => new Promise<void>((resolve) => server.close(() => resolve())));
  const address = server.server.address();
  const made: MailServer = {
    port: typeof address === "object" && address !== null ? address.port : 0,
    taken,
    hold: "none",
    held: () => held.length,
    async untilHeld(count) {
      const got = await poll(
        () => held.length,
        (length) => length >= count,
      );
      if (got < count) throw new Error(`${got} mails are held instead of ${count}.`);
    },
    letGo() {
      made.hold = "none";
      for (const goOn of held.splice(0)) void goOn();
    },
    connections: () => connections,
  };
  return made;
}
