/** A real SMTP server in this process, on loopback only, that keeps what it takes; a row of a test says where it refuses or hangs up. */
import { afterAll } from "bun:test";
import { SMTPServer, type SMTPServerOptions } from "smtp-server";
import type { Authority } from "./certificate.ts";

export interface Taken {
  from: string;
  to: string[];
  /** The message as it came, dots unstuffed. */
  raw: string;
  secure: boolean;
  user: string | null;
}

export interface MailServerOptions {
  /** What is offered: TLS from the first byte, STARTTLS, or neither. */
  security: "tls" | "starttls" | "none";
  authority: Authority;
  /** Names on the certificate; `localhost` when absent. */
  names?: string[];
  /** The password everybody has; null: nobody signs in. */
  password?: string | null;
  /** Answers RCPT TO, or the text, with this. */
  refuse?: { at: "recipient" | "text"; code: number; message: string };
  /** Hangs up at RCPT TO, or after the whole text. */
  hangUp?: "recipient" | "text";
}

export interface MailServer {
  port: number;
  taken: Taken[];
}

export async function startMailServer(options: MailServerOptions): Promise<MailServer> {
  const taken: Taken[] = [];
  const { cert, key } = options.authority.issue(options.names ?? ["localhost"]);
  const password = options.password ?? null;
  const refusal = (at: "recipient" | "text"): Error | null =>
    options.refuse?.at === at
      ? Object.assign(new Error(options.refuse.message), { responseCode: options.refuse.code })
      : null;
  const settings: SMTPServerOptions = {
    secure: options.security === "tls",
    cert,
    key,
    disabledCommands: [
      ...(options.security === "starttls" ? [] : ["STARTTLS"]),
      ...(password === null ? ["AUTH"] : []),
    ],
    authOptional: password === null,
    allowInsecureAuth: true,
    disableReverseLookup: true,
    onAuth(auth, _session, done) {
      if (auth.password === password) done(null, { user: auth.username ?? "" });
      else done(Object.assign(new Error("Invalid username or password"), { responseCode: 535 }));
    },
    onRcptTo(_address, session, done) {
      if (options.hangUp === "recipient") hangUp(session);
      else done(refusal("recipient"));
    },
    onData(stream, session, done) {
      const chunks: Buffer[] = [];
      stream.on("data", (chunk: Buffer) => chunks.push(chunk));
      stream.on("end", () => {
        if (options.hangUp === "text") {
          hangUp(session);
          return;
        }
        const refused = refusal("text");
        if (refused === null) {
          taken.push({
            from: session.envelope.mailFrom === false ? "" : (session.envelope.mailFrom?.address ?? ""),
            to: session.envelope.rcptTo.map(({ address }) => address),
            raw: Buffer.concat(chunks).toString(),
            secure: session.secure,
            user: typeof session.user === "string" ? session.user : null,
          });
        }
        done(refused);
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
  return { port: typeof address === "object" && address !== null ? address.port : 0, taken };
}
