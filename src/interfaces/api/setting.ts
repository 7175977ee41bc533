/** Shows and changes an environment's settings, which settings/settings.ts defines. */
import { Type } from "typebox";
import { Refusal } from "../../base/refusal.ts";
import { warningView } from "../../base/schema.ts";
import { recordDueTicks, recordMissedTicks } from "../../engine/schedule/schedule.ts";
import { limitUsageView, measureLimits } from "../../insight/overview/limit-usage.ts";
import { changeSettings, settingsInput, settingsView, showSettings } from "../../rules/settings/settings.ts";
import { docsUrl } from "../http/answer.ts";
import type { HttpDeps } from "../http/deps.ts";
import { environmentRoute } from "../http/route.ts";

function factsOf(deps: HttpDeps) {
  const { mode, limits } = deps.config;
  return { baseUrl: deps.baseUrl(), docsUrl: docsUrl(deps), mode, limits: { ...limits } };
}

export const settingRoutes = [
  environmentRoute({
    method: "GET",
    path: "/settings",
    needs: "read",
    summary: "Shows the environment's settings and the active caps, without secrets.",
    answer: Type.Object({ settings: settingsView }),
    read: async (tx, { deps, environmentId }) => ({
      settings: await showSettings(tx, environmentId, factsOf(deps)),
    }),
  }),
  environmentRoute({
    method: "GET",
    path: "/limits",
    needs: "read",
    summary: "Shows how much of its limits the environment uses. The list leaves out per-minute limits.",
    answer: Type.Object({ limits: Type.Array(limitUsageView) }),
    read: async (tx, { deps, environment, nowMs }) => ({
      limits: await measureLimits(tx, environment, deps.config.limits, nowMs),
    }),
  }),
  environmentRoute({
    method: "PUT",
    path: "/settings",
    needs: "edit_settings",
    summary:
      "Changes settings: hold, processor secret, mail, alerts, approvals, sign-in. version must be the version that you read. Settings that you leave out stay.",
    body: settingsInput,
    answer: Type.Object({ settings: settingsView, warnings: Type.Array(warningView) }),
    async handle({ deps, environmentId, origin, may, change, body }) {
      if (body.approvals !== undefined && !may("manage_server"))
        throw new Refusal(
          "forbidden",
          "approvals decides who may change production, so no key changes it: an owner does, under Settings or on the server.",
        );
      const { store, scheduler } = deps;
      const { allowPrivate } = deps.config;
      const settles = body.held === true && scheduler.trustsClock();
      if (settles) await recordMissedTicks(store, change);
      return await store.write(origin, async (tx) => {
        if (settles) await recordDueTicks(tx, change);
        const warnings = await changeSettings(tx, change, body, { sealer: () => deps.sealer, allowPrivate });
        return { settings: await showSettings(tx, environmentId, factsOf(deps)), warnings };
      });
    },
  }),
];
