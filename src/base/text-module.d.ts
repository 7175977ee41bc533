declare module "*.sql" {
  const text: string;
  export default text;
}
declare module "*/client/g.js" {
  const text: string;
  export default text;
}
declare module "*/relay_notice.mjs" {
  const text: string;
  export default text;
}
declare module "*/relay_notice.py" {
  const text: string;
  export default text;
}
declare module "*/relay_notice.go" {
  const text: string;
  export default text;
}
declare module "*/relay_notice.rb" {
  const text: string;
  export default text;
}
declare module "*/relay_notice.php" {
  const text: string;
  export default text;
}
declare module "*.svg" {
  const text: string;
  export default text;
}
declare module "*.txt" {
  const text: string;
  export default text;
}
declare module "*.md" {
  const text: string;
  export default text;
}
declare module "*.css" {
  const text: string;
  export default text;
}
declare module "*.service" {
  const text: string;
  export default text;
}
declare module "*.sysusers" {
  const text: string;
  export default text;
}
declare module "*.env" {
  const text: string;
  export default text;
}
declare module "*.yml" {
  const text: string;
  export default text;
}
declare module "*.yaml" {
  const text: string;
  export default text;
}
declare module "*/Dockerfile" {
  const text: string;
  export default text;
}
declare module "*/Caddyfile.nodes" {
  const text: string;
  export default text;
}
declare module "*/Caddyfile" {
  const text: string;
  export default text;
}

/** The path of a file. */
declare module "*.webp" {
  const path: string;
  export default path;
}
