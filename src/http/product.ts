/** Products of the catalog. */
import { Type } from "typebox";
import { readPageRequest } from "../ground/page.ts";
import { fields, orNull, pageOf, pageQuery, time } from "../ground/schema.ts";
import { deleteProduct, listProducts, requireProduct, saveProduct, viewProduct } from "../selling/product.ts";
import { environmentRoute } from "./route.ts";
import { readVersion, soldThrough, versionQuery } from "./selling-schema.ts";

const product = Type.Object({
  name: Type.String(),
  title: Type.String(),
  key: Type.String(),
  credits: Type.Integer(),
  soldThrough: orNull(soldThrough),
  version: Type.Integer(),
  createdAt: time,
  updatedAt: time,
});

export const productRoutes = [
  environmentRoute({
    method: "GET",
    path: "/products",
    summary: "Lists products, newest first.",
    query: fields(pageQuery),
    answer: pageOf(product),
    handle({ deps, environment, query }) {
      const page = readPageRequest(query);
      return deps.store.read((tx) => listProducts(tx, environment.id, page));
    },
  }),
  environmentRoute({
    method: "GET",
    path: "/products/:name",
    summary: "Shows one product.",
    answer: Type.Object({ product }),
    async handle({ deps, environment, params }) {
      const found = await deps.store.read((tx) => requireProduct(tx, environment.id, params.name));
      return { product: viewProduct(found) };
    },
  }),
  environmentRoute({
    method: "PUT",
    path: "/products/:name",
    summary: "Makes or replaces a product: the entitlement and credits it gives, and how it is sold.",
    body: fields({
      title: Type.Optional(Type.String()),
      key: Type.Optional(
        Type.String({ description: "an entitlement: a product or plan name, or access:<slug>" }),
      ),
      credits: Type.Optional(Type.Integer()),
      soldThrough: Type.Optional(Type.Unknown()),
      version: Type.Optional(Type.Integer()),
    }),
    answer: Type.Object({ product, created: Type.Boolean(), warnings: Type.Array(Type.String()) }),
    async handle({ deps, environment, by, origin, params, body, nowMs }) {
      const change = { environmentId: environment.id, by, nowMs };
      const saved = await deps.store.write(origin, (tx) => saveProduct(tx, change, params.name, body));
      return { ...saved, product: viewProduct(saved.product) };
    },
  }),
  environmentRoute({
    method: "DELETE",
    path: "/products/:name",
    summary: "Deletes a product; what people bought stays theirs.",
    query: versionQuery,
    answer: null,
    async handle({ deps, environment, by, origin, params, query, nowMs }) {
      const change = { environmentId: environment.id, by, nowMs };
      const version = readVersion(query.version);
      await deps.store.write(origin, (tx) => deleteProduct(tx, change, params.name, version));
      return undefined;
    },
  }),
];
