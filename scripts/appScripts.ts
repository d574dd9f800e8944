/**
 * `npm run app-scripts`: bundles the scripts of `packages/apps/page` into one module of `@skein/apps`: the script of the
 * sandbox proxy, `View` as a global, and the scripts of the ready apps. A test compares the module with the sources.
 */
import { build } from "esbuild"
import { writeFile } from "node:fs/promises"
import { join } from "node:path"

const root = join(import.meta.dirname, "..")

/** The module that the scripts are written to. */
export const target: string = join(root, "packages/apps/src/shared/pageScripts.ts")

/** Bundles a module for browsers, minified, as a classic script. */
export const bundled = async (file: string): Promise<string> => {
  const { outputFiles } = await build({
    entryPoints: [join(root, file)],
    bundle: true,
    write: false,
    platform: "browser",
    format: "iife",
    target: "es2022",
    conditions: ["@skein/source"],
    minify: true,
    legalComments: "none",
    charset: "utf8"
  })
  const text = outputFiles[0]!.text.trim()
  if (/<\/script|<!--/i.test(text)) throw new Error(`${file} would end its element`)
  return text
}

// Lines that people can read past: a string is cut at a statement.
const lines = (text: string): string =>
  text.split(/(?<=[;}])(?=.{400})/s).reduce<Array<string>>((all, part) => {
    const last = all.at(-1)
    if (last !== undefined && last.length + part.length < 400) all[all.length - 1] = last + part
    else all.push(part)
    return all
  }, []).map((line) => `  ${JSON.stringify(line)}`).join(",\n")

/** The scripts: their name, their source, and what they are. */
const scripts = [
  ["proxy", "proxy.ts", "The script of the sandbox proxy"],
  ["view", "viewGlobal.ts", "`View` as the global `SkeinView`"],
  ["approval", "approval.ts", "The script of the page of `Approval`"],
  ["choice", "choice.ts", "The script of the page of `Choice`"],
  ["form", "form.ts", "The script of the page of `Form`"],
  ["ui", "ui/ui.ts", "The script of the page of `UiApp`"],
  ["upload", "upload.ts", "The script of the page of `Upload`"]
] as const

/** The text of the module. */
export const scriptsModule = async (): Promise<string> => {
  const texts = await Promise.all(scripts.map(([, file]) => bundled(`packages/apps/page/${file}`)))
  return [
    "/**",
    " * The scripts of pages. Written by `npm run app-scripts`: do not edit.",
    " */",
    ...scripts.flatMap(([name], at) => [
      ...(at === 0 ? [] : [""]),
      `const ${name}Lines: ReadonlyArray<string> = [`,
      lines(texts[at]!),
      "]"
    ]),
    ...scripts.flatMap(([name, file, description]) => [
      "",
      `/** ${description}: \`packages/apps/page/${file}\`. */`,
      `export const ${name}Script: string = ${name}Lines.join("")`
    ]),
    ""
  ].join("\n")
}

if (import.meta.main) {
  const text = await scriptsModule()
  await writeFile(target, text)
  console.log(`packages/apps/src/shared/pageScripts.ts  ${text.length} characters`)
}
