/** Bundles scripts for a browser, for the examples with pages and for tests with pages. */
import { build, type BuildOptions } from "esbuild"

/** Bundles a script from a file (`entryPoints`) or from its text (`stdin`), and returns the bundle. */
export const browserScript = async (source: Pick<BuildOptions, "entryPoints" | "stdin">): Promise<string> => {
  const { outputFiles } = await build({
    ...source,
    bundle: true,
    write: false,
    platform: "browser",
    format: "esm",
    target: "es2023",
    conditions: ["@skein/source"],
    // Only applications that connect a client to a language model load this module.
    external: ["*/Toolkit.ts"],
    minify: true
  })
  return outputFiles[0]!.text
}
