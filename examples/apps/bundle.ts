/** Bundles the scripts of the example for the browser. */
import * as AppHtml from "@skein/apps/AppHtml"
import { build } from "esbuild"
import { readFile } from "node:fs/promises"
import { join } from "node:path"

const pathOf = (file: string): string => join(import.meta.dirname, file)

/** Bundles a script. */
export const bundle = async (file: string): Promise<string> => {
  const { outputFiles } = await build({
    entryPoints: [pathOf(file)],
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

/** The page of the app: one document with its style and its script. */
export const page = async (): Promise<string> =>
  AppHtml.document({
    title: "Tea sales",
    style: await readFile(pathOf("page/sales.css"), "utf8"),
    body: await readFile(pathOf("page/sales.html"), "utf8"),
    script: await bundle("page/sales.ts")
  })
