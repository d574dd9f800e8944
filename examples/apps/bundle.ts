/** Bundles the scripts of the example for the browser. */
import * as AppHtml from "@skein/apps/AppHtml"
import { readFile } from "node:fs/promises"
import { join } from "node:path"
import { browserScript } from "../browserScript.ts"

const pathOf = (file: string): string => join(import.meta.dirname, file)

/** Bundles a script. */
export const bundle = (file: string): Promise<string> => browserScript({ entryPoints: [pathOf(file)] })

/** The page of the app: one document with its style and its script. */
export const page = async (): Promise<string> =>
  AppHtml.document({
    title: "Tea sales",
    style: await readFile(pathOf("page/sales.css"), "utf8"),
    body: await readFile(pathOf("page/sales.html"), "utf8"),
    script: await bundle("page/sales.ts")
  })
