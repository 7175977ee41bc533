/** Saves the relays and the catalog of a selling kit into an environment, as an owner does. */
import type { EnvironmentName } from "../../src/platform/account/environment.ts";
import type { Kit } from "../../src/rules/senders/kit.ts";
import { KIT_NAMES, type KitNames, kitDefinitions } from "../../src/rules/senders/kit-definitions.ts";
import { requireSender } from "../../src/rules/senders/registry.ts";
import type { RunningService } from "./running-service.ts";

interface Saved {
  names?: KitNames;
  environment?: EnvironmentName;
  secret?: string;
}

export async function saveSellingKit(
  { api }: Pick<RunningService, "api">,
  kit: Kit,
  { names = KIT_NAMES, environment = "development", secret = "life-secret-of-this-test" }: Saved = {},
): Promise<void> {
  const { relays, catalog } = kitDefinitions(kit, requireSender(kit.sender), names);
  const save = async (method: string, path: string, body: unknown) => {
    const saved = await api(method, path, body, environment);
    if (saved.status >= 300) throw new Error(`${method} ${path}: ${saved.status} ${JSON.stringify(saved.body)}`);
  };
  const { collections, plans, products } = catalog as Record<string, Record<string, object>>;
  for (const [name, collection] of Object.entries(collections ?? {})) await save("POST", "/collections", { name, ...collection });
  for (const [index, definition] of relays.entries()) await save("POST", "/relays", { definition, ...(index === 0 ? { secret } : {}) });
  for (const [name, product] of Object.entries(products ?? {})) await save("PUT", `/products/${name}`, product);
  for (const [name, plan] of Object.entries(plans ?? {})) await save("PUT", `/plans/${name}`, plan);
}
