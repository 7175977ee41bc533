/** Passkeys of this browser. The library that speaks with it is loaded when a person uses one. */
import type { RegistrationResponseJSON } from "@simplewebauthn/browser";

/** Reports whether this browser can use passkeys at this address. */
export function canUsePasskeys(): boolean {
  return isSecureContext && "PublicKeyCredential" in window && !/^(?:[\d.]+|\[.*\])$/.test(location.hostname);
}

/** Signs with a passkey of the device. `options` and the result are the JSON text of the API. Throws a sentence. */
export async function signWithPasskey(options: string): Promise<string> {
  const { startAuthentication } = await import("@simplewebauthn/browser");
  return await readResult(startAuthentication({ optionsJSON: JSON.parse(options) }));
}

/** Creates a passkey on the device. `options` and the result are the JSON text of the API. Throws a sentence. */
export async function createPasskey(options: string): Promise<string> {
  const { startRegistration } = await import("@simplewebauthn/browser");
  const created = startRegistration({ optionsJSON: JSON.parse(options) });
  return await readResult(created.then(leaveOutCopies));
}

/** Leaves out what the attestation object contains, too, because the request has a limit. */
function leaveOutCopies(created: RegistrationResponseJSON): RegistrationResponseJSON {
  const { clientDataJSON, attestationObject, transports } = created.response;
  return { ...created, response: { clientDataJSON, attestationObject, ...(transports && { transports }) } };
}

async function readResult(asked: Promise<unknown>): Promise<string> {
  try {
    return JSON.stringify(await asked);
  } catch (thrown) {
    const isKnown = thrown instanceof Error && thrown.name === "InvalidStateError";
    throw new Error(
      isKnown
        ? "This device has a passkey of your account already: use another device."
        : "The browser gave no passkey, because you canceled or the time ran out: retry.",
    );
  }
}
