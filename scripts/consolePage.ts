/**
 * `npm run console-page`: bundles the page of the console (`packages/console/page`) into one module of `@skein/console`,
 * so that the package needs no files beside its code. A test compares the module with the sources.
 */
import { build } from "esbuild"
import { createHash } from "node:crypto"
import { readFile, writeFile } from "node:fs/promises"
import { join } from "node:path"

const root = join(import.meta.dirname, "..")
const folder = join(root, "packages/console/page")

/** The module that the page is written to. */
export const target: string = join(root, "packages/console/src/internal/pageHtml.ts")

const sha256 = (text: string): string => `'sha256-${createHash("sha256").update(text).digest("base64")}'`

const bundled = async (file: string): Promise<string> => {
  const { outputFiles } = await build({
    entryPoints: [join(folder, file)],
    bundle: true,
    write: false,
    platform: "browser",
    format: "iife",
    target: "es2022",
    minify: true,
    legalComments: "none",
    charset: "utf8"
  })
  return outputFiles[0]!.text.trim()
}

/** The text of the module. */
export const pageModule = async (): Promise<string> => {
  const [html, script, style] = await Promise.all([
    readFile(join(folder, "index.html"), "utf8"),
    bundled("main.ts"),
    bundled("styles.css")
  ])
  if (/<\/(script|style)/i.test(script + style)) throw new Error("The script or the style would end its element")
  const page = html
    .split("\n").map((line) => line.trim()).join("\n")
    .replace("/* styles.css */", () => style)
    .replace("/* main.ts */", () => script)
  const policy = [
    "default-src 'none'",
    `script-src ${sha256(script)}`,
    `style-src-elem ${sha256(style)}`,
    "style-src-attr 'none'",
    "connect-src 'self'",
    "img-src data:",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'"
  ].join("; ")
  const lines = page.trimEnd().split("\n").map((line) => `  ${JSON.stringify(line)}`)
  return [
    "/**",
    " * The page of the console, with its script and its styles. Written by `npm run console-page`: do not edit.",
    " */",
    `export const contentSecurityPolicy: string =\n  ${JSON.stringify(policy)}`,
    "",
    "const lines: ReadonlyArray<string> = [",
    lines.join(",\n"),
    "]",
    "",
    "/** The page. It loads nothing else. */",
    "export const pageHtml: string = lines.join(\"\\n\")",
    ""
  ].join("\n")
}

if (import.meta.main) {
  const text = await pageModule()
  await writeFile(target, text)
  console.log(`packages/console/src/internal/pageHtml.ts  ${text.length} characters`)
}
