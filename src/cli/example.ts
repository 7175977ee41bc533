/** The bundled example: a receiver for a payment provider's signed event, and the collection it writes to. It never replaces a file. */
import { existsSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { catalogPath } from "../sync/catalog-file.ts";
import { definitionPath, listDefinitionFiles, relaysFolder } from "../sync/definition-file.ts";

export const EXAMPLE_NAME = "checkout-completed";

/** The recipe is Stripe's, so that pasting a real endpoint's secret is all that is left to do. */
export const EXAMPLE_DEFINITION = {
  name: EXAMPLE_NAME,
  trigger: {
    kind: "receiver",
    verify: {
      scheme: "signature",
      header: "stripe-signature",
      signatureKey: "v1",
      timestampKey: "t",
      signedPayload: "{timestamp}.{body}",
      encoding: "hex",
    },
    map: {
      event_id: "id",
      event_type: "type",
      person_email: "data.object.customer_details.email",
      order: "data.object.id",
      amount: "data.object.amount_total",
    },
    when: { event_type: "checkout.session.completed" },
  },
  actions: [
    {
      type: "write_record",
      collection: "orders",
      to: "person",
      data: { order: "{{mapped.order}}", amount: "{{mapped.amount}}" },
    },
  ],
};

export const EXAMPLE_CATALOG = {
  collections: {
    orders: {
      kind: "addressed",
      fields: {
        order: { type: "text", required: true },
        amount: { type: "number", required: true },
      },
    },
  },
};

/** Writes the example where the service directory has no relay yet; answers the files written. */
export async function writeExample(serviceDir: string): Promise<string[]> {
  if ((await listDefinitionFiles(serviceDir)).length > 0) return [];
  await mkdir(relaysFolder(serviceDir), { recursive: true });
  const files: [string, unknown][] = [
    [definitionPath(serviceDir, EXAMPLE_NAME), EXAMPLE_DEFINITION],
    [catalogPath(serviceDir), EXAMPLE_CATALOG],
  ];
  const written: string[] = [];
  for (const [file, value] of files) {
    if (existsSync(file)) continue;
    await writeFile(file, `${JSON.stringify(value, null, 2)}\n`, { flag: "wx" });
    written.push(file);
  }
  return written;
}
