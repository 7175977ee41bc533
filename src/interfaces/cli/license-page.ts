/** The licenses of the executable's packages. The macro runs when the build bundles this file, or when the sources load it. */
import { packLicensePage } from "../../../scripts/license-page.ts" with { type: "macro" };
import { unpack } from "../../base/packed.ts";

export const LICENSE_PAGE: string = unpack<string>(packLicensePage());
