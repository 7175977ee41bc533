/** Guesses the start of a relay from one request. It saves nothing. */
import { Type } from "typebox";
import { guessInput, guessRequest, guessView } from "../../insight/simulate/guess-request.ts";
import { listRelayNames, receiverUrl } from "../../rules/relay/relay.ts";
import { environmentRoute } from "../http/route.ts";

export const guessRoutes = [
  environmentRoute({
    method: "POST",
    path: "/relays/guess",
    needs: "read",
    summary:
      "Guesses the start of a relay from one request: its sender, its signature, and the meaning of its values. It saves nothing and returns no secret.",
    body: guessInput,
    answer: Type.Object({ guess: guessView }),
    async handle({ deps, environment, environmentId, body, nowMs }) {
      const names = new Set(await deps.store.read((tx) => listRelayNames(tx, environmentId)));
      return {
        guess: await guessRequest(body, {
          nowMs,
          urlOf: (name) => receiverUrl(deps.baseUrl(), environment.appId, name),
          isTaken: (name) => names.has(name),
        }),
      };
    },
  }),
];
