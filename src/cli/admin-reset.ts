/** `relay admin reset`: a forgotten password, by one-time link or at once. */
import { findOwnerByEmail, setOwnerPassword } from "../account/owner.ts";
import { auditOwner, makeLink, OWNER_OPTIONS, readEmail, readPasswordHash, sayOwner } from "./admin-owner.ts";
import { type Command, CommandFailure } from "./command.ts";
import { withStore } from "./data-directory.ts";

export const adminReset: Command = {
  words: ["admin", "reset"],
  summary: "reset an owner's password, with a one-time link",
  options: OWNER_OPTIONS,
  async run(input, world) {
    const email = readEmail(input);
    const passwordHash = await readPasswordHash(input, world);
    const nowMs = world.clock.now();
    const made = await withStore(input, world, (store) =>
      store.write("dashboard", async (tx) => {
        const owner = await findOwnerByEmail(tx, email);
        if (owner === null) {
          throw new CommandFailure("not_found", `There is no owner ${email}: relay admin create makes one.`);
        }
        if (passwordHash !== null) await setOwnerPassword(tx, owner.id, passwordHash);
        await auditOwner(tx, "owner.reset", owner, nowMs);
        return { owner, link: passwordHash === null ? await makeLink(tx, owner, nowMs) : null };
      }),
    );
    sayOwner(world, input, made);
    return 0;
  },
};
