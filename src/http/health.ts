/** Whether the process is up, and whether it can do its work now. Open to anyone; says nothing else about the service. */
import { Type } from "typebox";
import { answerJson } from "./answer.ts";
import { openRoute } from "./route.ts";

export const healthRoutes = [
  openRoute({
    method: "GET",
    path: "/healthz",
    summary: "Answers while the process is up.",
    answer: Type.Object({ ok: Type.Boolean() }),
    handle: () => ({ ok: true }),
  }),
  openRoute({
    method: "GET",
    path: "/readyz",
    summary: "Answers 200 while the store takes writes and the runner is alive, else 503 with the problem.",
    answer: Type.Object({ ready: Type.Boolean(), problem: Type.Optional(Type.String()) }),
    async handle({ deps }) {
      const state = await deps.checkReady();
      return state.ready ? state : answerJson(503, state);
    },
  }),
];
