/** The licenses of the executable's packages. The macro runs when the build bundles this file, or when the sources load it. */
import { writeLicensePage } from "../../../scripts/license-page.ts" with { type: "macro" };

export const LICENSE_PAGE: string = writeLicensePage();
