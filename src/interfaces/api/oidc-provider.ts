/** The OpenID provider of the server: its settings, its test, the switch of passwords, and the link of a member to an account there. */
import { Type } from "typebox";
import { Refusal } from "../../base/refusal.ts";
import { fields, orNull } from "../../base/schema.ts";
import { findOwnerById } from "../../platform/account/owner.ts";
import { SERVER_SCOPE, writeAudit } from "../../platform/audit/audit.ts";
import { unlinkMember } from "../../platform/oidc/admitted-identity.ts";
import {
  changeProvider,
  providerInput,
  providerView,
  removeProvider,
  requireProvider,
  setPasswordSignin,
  viewProvider,
} from "../../platform/oidc/provider.ts";
import type { Reader } from "../../store/port.ts";
import type { HttpDeps } from "../http/deps.ts";
import { ownerRoute } from "../http/route.ts";
import { requireServer, requireStill } from "./account.ts";

const settings = Type.Object({
  provider: orNull(providerView),
  redirectUrl: Type.String({ description: "the redirect address to register at the provider" }),
  signOutUrl: Type.String({ description: "the address after a sign-out, to register at the provider" }),
});

async function viewSettings({ oidc, baseUrl }: HttpDeps, tx: Reader) {
  return {
    provider: await viewProvider(tx),
    redirectUrl: oidc.redirectUrl,
    signOutUrl: `${baseUrl()}/`,
  };
}

export const oidcProviderRoutes = [
  ownerRoute({
    method: "GET",
    path: "/api/oidc",
    needs: "manage_server",
    summary: "Shows the OpenID provider without its secret, and the addresses to register at the provider.",
    answer: settings,
    read: (tx, { deps }) => viewSettings(deps, tx),
  }),
  ownerRoute({
    method: "PUT",
    path: "/api/oidc",
    needs: "manage_server",
    summary:
      "Sets the OpenID provider, and the roles that its groups give. The client secret is never shown again.",
    body: providerInput,
    answer: settings,
    async handle({ deps, owner, body, nowMs }) {
      requireServer(deps);
      return await deps.store.write("dashboard", async (tx) => {
        await requireStill(tx, owner);
        await changeProvider(tx, { nowMs, by: `owner:${owner.email}`, sealer: deps.sealer }, body);
        return await viewSettings(deps, tx);
      });
    },
  }),
  ownerRoute({
    method: "DELETE",
    path: "/api/oidc",
    needs: "manage_server",
    summary:
      "Removes the OpenID provider and its secret. Members stay, and sign in with their passwords again.",
    answer: settings,
    async write(tx, { deps, owner, nowMs }) {
      await requireStill(tx, owner);
      await removeProvider(tx, { nowMs, by: `owner:${owner.email}` });
      return await viewSettings(deps, tx);
    },
  }),
  ownerRoute({
    method: "POST",
    path: "/api/oidc/test",
    needs: "manage_server",
    summary: "Asks the OpenID provider for its addresses (discovery).",
    answer: Type.Object({
      issuer: Type.String(),
      signOut: Type.Boolean({ description: "whether a sign-out here also ends the session at the provider" }),
    }),
    async handle({ deps }) {
      const provider = await deps.store.read((tx) => requireProvider(tx, deps.sealer));
      const { hasSignOut } = await deps.oidc.discover(provider);
      return { issuer: provider.issuer, signOut: hasSignOut };
    },
  }),
  ownerRoute({
    method: "PUT",
    path: "/api/oidc/passwords",
    needs: "manage_server",
    summary:
      "Switches sign-in with passwords on or off. Off needs an owner who signed in at the provider, and ends each session that did not begin there.",
    body: fields({ passwords: Type.Boolean({ description: "whether members can sign in with a password" }) }),
    answer: settings,
    async write(tx, { deps, owner, body, nowMs }) {
      await requireStill(tx, owner);
      await setPasswordSignin(tx, { nowMs, by: `owner:${owner.email}` }, body.passwords);
      return await viewSettings(deps, tx);
    },
  }),
  ownerRoute({
    method: "DELETE",
    path: "/api/owners/:id/identity",
    needs: "manage_server",
    summary:
      "Unlinks a member from their account at the OpenID provider, and ends the sessions that began there. The next sign-in links by the address again.",
    answer: null,
    async write(tx, { owner, params, nowMs }) {
      await requireStill(tx, owner);
      const member = await findOwnerById(tx, params.id);
      if (member === null || (await unlinkMember(tx, member.id)) === 0)
        throw new Refusal(
          "not_found",
          "There is no member with this id who is linked to an account: GET /api/owners lists the members.",
        );
      const by = `owner:${owner.email}`;
      const row = { environmentId: SERVER_SCOPE, nowMs, by, target: `owner:${member.email}` };
      await writeAudit(tx, { ...row, action: "owner.unlinked" });
    },
  }),
];
