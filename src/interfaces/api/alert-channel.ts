/** Alert channels: where alerts go in addition to mail. Secret fields are never shown. */
import { Type } from "typebox";
import { textOrNull } from "../../base/schema.ts";
import { testChannel } from "../../engine/maintenance/alert-channels.ts";
import {
  changeChannel,
  channelInput,
  channelKindView,
  channelView,
  createChannel,
  listChannelKinds,
  listChannels,
  newChannelInput,
  removeChannel,
  viewChannel,
} from "../../platform/channel/channel.ts";
import { ownHostOf } from "../../platform/outbound/call-target.ts";
import type { HttpDeps } from "../http/deps.ts";
import { environmentRoute } from "../http/route.ts";

function channelDeps(deps: HttpDeps) {
  const { mode, allowPrivate } = deps.config;
  const local = mode === "local";
  return { sealer: () => deps.sealer, local, allowPrivate, ownHosts: [ownHostOf(deps.baseUrl())] };
}

const answer = Type.Object({ channel: channelView });

export const alertChannelRoutes = [
  environmentRoute({
    method: "GET",
    path: "/alert-channels",
    needs: "read",
    summary: "Lists the alert channels of the environment, and the kinds with the fields that each needs.",
    answer: Type.Object({ channels: Type.Array(channelView), kinds: Type.Array(channelKindView) }),
    read: async (tx, { environmentId }) => ({
      channels: (await listChannels(tx, environmentId)).map(viewChannel),
      kinds: listChannelKinds(),
    }),
  }),
  environmentRoute({
    method: "POST",
    path: "/alert-channels",
    needs: "edit_settings",
    summary: "Adds an alert channel. The secret that signs the requests of a webhook is shown once.",
    body: newChannelInput,
    answer: Type.Object({ channel: channelView, signingSecret: textOrNull }),
    status: 201,
    async write(tx, { deps, change, body }) {
      const { channel, signingSecret } = await createChannel(tx, change, body, channelDeps(deps));
      return { channel: viewChannel(channel), signingSecret };
    },
  }),
  environmentRoute({
    method: "PUT",
    path: "/alert-channels/:id",
    needs: "edit_settings",
    summary:
      "Changes an alert channel. What you leave out stays, also a field. Waiting alerts are sent within a minute.",
    body: channelInput,
    answer,
    write: async (tx, { deps, change, params, body }) => ({
      channel: viewChannel(await changeChannel(tx, change, params.id, body, channelDeps(deps))),
    }),
  }),
  environmentRoute({
    method: "POST",
    path: "/alert-channels/:id/test",
    needs: "edit_settings",
    sensitive: false,
    summary: "Sends a test message to an alert channel now, and returns what its service answered.",
    answer: Type.Object({ ok: Type.Boolean(), message: Type.String() }),
    async handle({ deps, environmentId, by, params }) {
      const local = deps.config.mode === "local";
      const { meaning, message } = await testChannel({ ...deps, local }, { environmentId, by }, params.id);
      return { ok: meaning === "ok", message };
    },
  }),
  environmentRoute({
    method: "DELETE",
    path: "/alert-channels/:id",
    needs: "edit_settings",
    summary: "Removes an alert channel. Alerts that it has not sent yet stay in the dashboard.",
    answer: null,
    async write(tx, { change, params }) {
      await removeChannel(tx, change, params.id);
    },
  }),
];
