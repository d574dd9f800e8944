/** The folders of the build. Git ignores those in `dist`. */
import { join } from "node:path"

/** The folder of the site's programs, packages and configuration. */
export const site = import.meta.dirname

/** The pages that VitePress reads. */
export const staging = join(site, "dist/pages")

/** The pages that TypeDoc writes. */
export const typedoc = join(site, "dist/typedoc")

/** The built site. */
export const built = join(site, "dist/site")
