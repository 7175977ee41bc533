/** Opens a page with only the form of a definition, on the address and with the session of the dashboard. */
import { join } from "node:path";
import type { Page } from "playwright-core";

const ROOT = join(import.meta.dir, "..", "..");

/** `text` is the definition, `body` is the request in view, and `saved` is the name of the saved relay. */
export async function mountForm(page: Page, address: string, text: string, body = "{}", saved: string | null = null): Promise<void> {
  const built = await Bun.build({ entrypoints: [join(import.meta.dir, "form-page.ts"), join(ROOT, "web/style/main.css")] });
  const [script = "", style = ""] = await Promise.all(
    [".js", ".css"].map(async (end) => (await built.outputs.find(({ path }) => path.endsWith(end))?.text()) ?? ""),
  );
  const start = JSON.stringify({ text, body, saved }).replaceAll("<", "\\u003c");
  const markup = `<!doctype html><html lang="en"><meta charset="utf-8"><title>Form</title><style>${style}</style><body><script>window.formStart=${start};window.formTarget=null;window.formShown=null</script><script type="module">${script.replaceAll("</script", "<\\/script")}</script></body></html>`;
  await page.route(address, (route) => route.fulfill({ contentType: "text/html", body: markup }));
  await page.goto(address);
  await page.getByRole("group", { name: "Form of the definition" }).waitFor();
}
