/** Checks that the OpenID provider answers, and names what its client needs. */
import { Refusal } from "../../base/refusal.ts";
import { OidcClient } from "../../platform/oidc/oidc-client.ts";
import { findProvider } from "../../platform/oidc/provider.ts";
import type { Reader } from "../../store/port.ts";
import { type DoctorTarget, type Finding, fail, pass, warn } from "./finding.ts";

const CHECK = "OpenID provider";

export async function checkOidc(tx: Reader, target: DoctorTarget): Promise<Finding> {
  const provider = await findProvider(tx);
  if (provider === null) return pass(CHECK, "None is set, so members sign in with passwords.");
  const { clock, allowPrivate, baseUrl } = target;
  const client = new OidcClient({ clock, allowPrivate, baseUrl: () => baseUrl ?? "" });
  try {
    await client.discover(provider);
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    const todo =
      "check the issuer URL and the network, then run relay oidc provider --test; to allow passwords meanwhile, run relay oidc passwords on";
    return provider.passwords ? warn(CHECK, error.message, todo) : fail(CHECK, error.message, todo);
  }
  const only = provider.passwords ? "" : " Members sign in only there.";
  return pass(CHECK, `${provider.name} answers at ${provider.issuer}.${only}`);
}
