/** Members of a test's server: people with a role, who are signed in. */
import { createOwner } from "../../src/platform/account/owner.ts";
import { EVERY, type Membership, type Role } from "../../src/platform/account/permission.ts";
import { createSession } from "../../src/platform/account/session.ts";
import type { Writer } from "../../src/store/port.ts";

interface Member {
  id: string;
  email: string;
  /** The token of the session's cookie. */
  token: string;
}

/** Returns a role in an app and an environment, by default everywhere. An owner sees payloads. */
export const makeRole = (role: Role, appId: string = EVERY, name: string = EVERY): Membership => ({
  appId,
  name,
  role,
  payloads: role === "owner",
});

/** Creates a member `<name>@example.com` with these roles and a session. The default is an owner of everything. */
export async function addMember(
  tx: Writer,
  name: string,
  {
    nowMs,
    memberships = [makeRole("owner")],
    passwordHash = null,
  }: { nowMs: number; memberships?: readonly Membership[]; passwordHash?: string | null },
): Promise<Member> {
  const { id, email } = await createOwner(tx, { email: `${name}@example.com`, passwordHash, memberships, nowMs });
  return { id, email, token: (await createSession(tx, id, nowMs)).token };
}
