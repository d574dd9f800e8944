/** The doc comments of the public modules of `@skein/auth`, `@skein/console`, `@skein/openapi`, `@skein/gateway`, `@skein/apps`, `@skein/skills` and `@skein/code-mode`: each export has one, and each function an example. */
import { describe, expect, it } from "@effect/vitest"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { publicModules } from "../../scripts/publicModules.ts"
import { docs } from "./blocks.ts"

const src = join(docs, "../packages")
const modules = ["auth", "console", "openapi", "gateway", "apps", "skills", "code-mode"].flatMap((name) =>
  publicModules(join(src, name)).map(({ path }) => `${name}/src/${path}.ts`)
)

/** The doc comment that ends in the line before `at`. */
const commentAbove = (lines: ReadonlyArray<string>, at: number): string => {
  if (!lines[at - 1]!.trim().endsWith("*/")) return ""
  let from = at - 1
  while (from > 0 && !lines[from]!.includes("/**")) from--
  return lines.slice(from, at).join("\n")
}

describe("the doc comments of @skein/auth, @skein/console, @skein/openapi, @skein/gateway, @skein/apps, @skein/skills and @skein/code-mode", () => {
  it.each(modules)("describe each export, with an example of each function: %s", (module) => {
    const source = readFileSync(join(src, module), "utf8")
    const lines = source.split("\n")
    const missing = lines.flatMap((line, at) => {
      const [, kind = "", name = ""] = /^export (const|class|interface|type|function) (\w+)/.exec(line) ?? []
      if (name === "") return []
      const comment = commentAbove(lines, at)
      return comment === "" || (kind === "const" && !comment.includes("@example")) ? [name] : []
    })
    expect(missing).toEqual([])
    expect(source).toMatch(/^\/\*\*/)
  })

  it.each(modules)("describe each option: %s", (module) => {
    const lines = readFileSync(join(src, module), "utf8").split("\n")
    // The block of an interface that is exported: from its line to the next line without an indent.
    let isOptions = false
    const missing = lines.flatMap((line, at) => {
      if (/^\S/.test(line)) isOptions = /^export interface \w*Options\b/.test(line)
      const name = /^ {2}readonly (\w+)\??:/.exec(line)?.[1]
      return isOptions && name !== undefined && commentAbove(lines, at) === "" ? [name] : []
    })
    expect(missing).toEqual([])
  })
})
