/** Asks the server on this machine. A proxy from the environment (HTTP_PROXY) would answer for itself, so none is used. */
const TIMEOUT_MS = 5_000;

/** Sends a GET to an address of the server. Returns null if no answer arrives in five seconds. */
export async function askNearServer(url: string): Promise<{ status: number; text: string } | null> {
  try {
    const signal = AbortSignal.timeout(TIMEOUT_MS);
    const response = await fetch(url, { signal, redirect: "manual", proxy: false });
    return { status: response.status, text: await response.text() };
  } catch {
    return null;
  }
}
