/** Plays a life of a selling kit step by step, only in local development and in development. */
import { Type } from "typebox";
import { fields } from "../../base/schema.ts";
import { lifeInput, lifeView, playStep } from "../../insight/simulate/life.ts";
import { effectAnswer, effectQuery, readEffect, readEventIds } from "../../insight/simulate/life-effect.ts";
import { environmentRoute } from "../http/route.ts";

export const simulationRoutes = [
  environmentRoute({
    method: "POST",
    path: "/simulations",
    needs: "edit_definitions",
    summary:
      "Sends one step of a selling kit's life as signed requests, with all their effects. Without step it shows the steps. Production accepts none.",
    body: lifeInput,
    answer: Type.Object({ simulation: lifeView }),
    async handle({ deps, origin, source, environment, body, change }) {
      const { store, clock, sealer, relays, receiver } = deps;
      const { invitesPerDay } = deps.config.limits;
      return {
        simulation: await playStep(
          { store, clock, sealer, relays, receiver, origin, source, invitesPerDay },
          environment,
          body,
          change,
        ),
      };
    },
  }),
  environmentRoute({
    method: "GET",
    path: "/simulations/effect",
    needs: "read",
    summary:
      "Shows what the events of a simulated step did, and what the person has now. settled is true once no event runs any more.",
    query: fields(effectQuery),
    answer: effectAnswer,
    async handle({ deps, environmentId, nowMs, query }) {
      const at = { environmentId, nowMs };
      return { effect: await readEffect(deps.store, at, query.person, readEventIds(query.events)) };
    },
  }),
];
