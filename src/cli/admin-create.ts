/** `relay admin create`: a person who may sign in to the dashboard. */
import { createOwner } from "../account/owner.ts";
import { auditOwner, makeLink, OWNER_OPTIONS, readEmail, readPasswordHash, sayOwner } from "./admin-owner.ts";
import type { Command } from "./command.ts";
import { withStore } from "./data-directory.ts";

export const adminCreate: Command = {
  words: ["admin", "create"],
  summary: "make an owner of the dashboard, with a one-time link to set the password",
  options: OWNER_OPTIONS,
  examples: [
    "relay admin create --email you@example.com --base-url https://relay.example.com",
    "relay admin create --email you@example.com --password-stdin < password.txt",
  ],
  async run(input, world) {
    const email = readEmail(input);
    const passwordHash = await readPasswordHash(input, world);
    const nowMs = world.clock.now();
    const made = await withStore(
      input,
      world,
      (store) =>
        store.write("dashboard", async (tx) => {
          const owner = await createOwner(tx, { email, passwordHash, nowMs });
          await auditOwner(tx, "owner.created", owner, nowMs);
          return { owner, link: passwordHash === null ? await makeLink(tx, owner, nowMs) : null };
        }),
      { create: true },
    );
    sayOwner(world, input, made);
    return 0;
  },
};
