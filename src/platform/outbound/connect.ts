/**
 * Connects only to checked addresses: the socket gets an address and never a name, so the name cannot be resolved again. TLS still uses the
 * host name for SNI and for the certificate check.
 */
import { isIP, connect as netConnect, type Socket } from "node:net";
import type { connect as ConnectTls, SecureContext } from "node:tls";
import type { Clock } from "../../base/clock.ts";
import { canonicalAddress } from "./address.ts";
import { isTlsError } from "./error-code.ts";

/** The time that one address may take to connect before the next one is tried. */
const NEXT_ADDRESS_AFTER_MS = 2_500;
const MAX_ADDRESSES_TRIED = 4;

interface Tls {
  connect: typeof ConnectTls;
  secureContext: SecureContext;
}

/** Loads TLS on first use, because reading the built-in authorities takes longer than the rest of the start. */
type Trust = () => Promise<Tls>;

/** Creates the trust: the built-in authorities and further ones in PEM. */
export function makeTrust(certificateAuthorities: readonly string[]): Trust {
  let loaded: Promise<Tls> | null = null;
  const load = async (): Promise<Tls> => {
    const { connect, createSecureContext, rootCertificates } = await import("node:tls");
    const further =
      certificateAuthorities.length === 0 ? {} : { ca: [...rootCertificates, ...certificateAuthorities] };
    return { connect, secureContext: createSecureContext(further) };
  };
  return () => {
    loaded ??= load();
    return loaded;
  };
}

/** The target; the host name is only for the certificate. */
interface ConnectTarget {
  host: string;
  port: number;
}

interface ConnectOptions {
  clock: Clock;
  /** TLS from the first byte; null: plain TCP. */
  trust: Trust | null;
  /** Aborts the attempt; its reason becomes the error. */
  signal: AbortSignal;
}

/** Connects to the first address that accepts. Rejects with the last error; a TLS error ends the attempts at once. */
export async function connectPinned(
  target: ConnectTarget,
  addresses: readonly string[],
  options: ConnectOptions,
): Promise<Socket> {
  let lastError: unknown = new Error("no address to connect to");
  const tls = (await options.trust?.()) ?? null;
  const tried = addresses.slice(0, MAX_ADDRESSES_TRIED);
  for (const [index, address] of tried.entries()) {
    const waitMs = index === tried.length - 1 ? null : NEXT_ADDRESS_AFTER_MS;
    try {
      return await connectOne(target, address, waitMs, { ...options, tls });
    } catch (error) {
      if (options.signal.aborted || isTlsError(error)) throw error;
      lastError = error;
    }
  }
  throw lastError;
}

function connectOne(
  target: ConnectTarget,
  address: string,
  waitMs: number | null,
  { clock, tls, signal }: Omit<ConnectOptions, "trust"> & { tls: Tls | null },
): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket =
      tls === null ? netConnect({ host: address, port: target.port }) : openTls(target, address, tls);
    const fail = (error: unknown): void => {
      stopWaiting();
      socket.destroy();
      reject(error);
    };
    const abort = (): void => fail(signal.reason);
    const cancelTimer =
      waitMs === null ? () => {} : clock.after(waitMs, () => fail(new Error("connecting took too long")));
    const stopWaiting = (): void => {
      cancelTimer();
      signal.removeEventListener("abort", abort);
    };
    signal.addEventListener("abort", abort);
    socket.setNoDelay(true);
    socket.on("error", fail);
    socket.once("close", () => fail(new Error("the connection was closed")));
    socket.once(tls === null ? "connect" : "secureConnect", () => {
      if (!isPinned(socket, address)) return fail(new Error("the connection left its pinned address"));
      stopWaiting();
      resolve(socket);
    });
    if (signal.aborted) abort();
  });
}

function openTls(target: ConnectTarget, address: string, { connect, secureContext }: Tls): Socket {
  const named = isIP(target.host) === 0 ? { servername: target.host } : {};
  return connect({
    host: address,
    port: target.port,
    ...named,
    secureContext,
    rejectUnauthorized: true,
    ALPNProtocols: ["http/1.1"],
  });
}

function isPinned(socket: Socket, address: string): boolean {
  const remote = socket.remoteAddress;
  return remote !== undefined && canonicalAddress(remote) === canonicalAddress(address);
}
