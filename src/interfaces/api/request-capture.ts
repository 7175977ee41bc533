/** Captures: temporary receiver URLs for the requests of a provider that no relay knows yet. */
import { Type } from "typebox";
import {
  captureUrl,
  captureView,
  createCapture,
  deleteCapture,
  readCapture,
  viewCapture,
} from "../../engine/receiver/request-capture.ts";
import { environmentRoute } from "../http/route.ts";

const answer = Type.Object({ capture: captureView });

export const requestCaptureRoutes = [
  environmentRoute({
    method: "POST",
    path: "/captures",
    needs: "edit_definitions",
    keepsDefinitions: true,
    summary:
      "Creates a temporary receiver URL that stores requests for an hour, verified or not. Of more than ten open ones, it deletes the oldest.",
    answer,
    status: 201,
    async handle({ deps, environment, origin, change }) {
      const row = await deps.store.write(origin, (tx) => createCapture(tx, change), environment.id);
      const url = captureUrl(deps.sealer, deps.baseUrl(), environment.appId, row.id);
      return { capture: await viewCapture(deps.sealer, row, [], url) };
    },
  }),
  environmentRoute({
    method: "GET",
    path: "/captures/:id",
    needs: "edit_definitions",
    keepsDefinitions: true,
    summary: "Shows the requests that a capture has received, oldest first, with their headers and bodies.",
    answer,
    async handle({ deps, environment, environmentId, params, nowMs }) {
      const { row, requests } = await deps.store.read((tx) =>
        readCapture(tx, params.id, { environmentId, nowMs }),
      );
      const url = captureUrl(deps.sealer, deps.baseUrl(), environment.appId, row.id);
      return { capture: await viewCapture(deps.sealer, row, requests, url) };
    },
  }),
  environmentRoute({
    method: "DELETE",
    path: "/captures/:id",
    needs: "edit_definitions",
    sensitive: false,
    keepsDefinitions: true,
    summary: "Deletes a capture with its requests. Its URL then takes no request.",
    answer: null,
    async write(tx, { params, change }) {
      await deleteCapture(tx, params.id, change);
    },
  }),
];
