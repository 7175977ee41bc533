/** The four parts of prom-client that are used: its index also loads a push gateway, a cluster's and the process's metrics, and HTTP with them. */
declare module "prom-client/lib/counter.js" {
  export { Counter as default } from "prom-client";
}
declare module "prom-client/lib/gauge.js" {
  export { Gauge as default } from "prom-client";
}
declare module "prom-client/lib/histogram.js" {
  export { Histogram as default } from "prom-client";
}
declare module "prom-client/lib/registry.js" {
  export { Registry as default } from "prom-client";
}
