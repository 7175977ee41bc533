/** Loads only undici's client, which takes half of the memory and a third of the time of loading `undici/index.js`. */
declare module "undici/lib/dispatcher/client.js" {
  export { Client as default } from "undici/index.js";
}
