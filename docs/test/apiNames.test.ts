/** The guides against the code: every name of a public module that they mention in backticks exists. */
import { describe, expect, it } from "@effect/vitest"
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { publicModules } from "../../scripts/publicModules.ts"
import { docs, guides } from "./blocks.ts"

const root = join(docs, "..")

/** The names that each public module declares, exports or has as members. Modules of one name are taken together. */
const declared = new Map<string, Set<string>>()
for (const name of readdirSync(join(root, "packages"))) {
  const folder = join(root, "packages", name)
  for (const { name: module, path } of publicModules(folder)) {
    const source = readFileSync(join(folder, "src", `${path}.ts`), "utf8")
    const names = declared.get(module) ?? new Set()
    declared.set(module, names)
    for (
      const [, one = ""] of source.matchAll(
        /(?:const|class|interface|type|function|get|readonly|static async|static) (\w+)/g
      )
    ) {
      names.add(one)
    }
    for (const [, list = ""] of source.matchAll(/export (?:type )?\{([^}]*)\}/g)) {
      for (const one of list.split(",")) names.add(one.trim().replace(/^(?:type )?(?:\w+ as )?/, ""))
    }
    for (const [, one = ""] of source.matchAll(/^ {2,4}(\w+)(?:<[^>]*>)?\(/gm)) names.add(one)
  }
}

const pages = ["README.md", ...guides.map((guide) => `docs/${guide}`)]

describe("the names in the guides", () => {
  it.each(pages)("exist: %s", (page) => {
    const all = readFileSync(join(root, page), "utf8")
    // The first column of a table of `coming-from`, and the text before the colon of an item of `renamed.md`, has the names of
    // the other library or version. Nothing else in these pages has them.
    const text = page.includes("coming-from")
      ? all.replaceAll(/^\|[^|]*\|/gm, "|")
      : page.endsWith("renamed.md")
      ? all.replaceAll(/^- (?:`[^`\n]*`|[^`:\n])*: /gm, "- ")
      : all
    const unknown = Array.from(text.matchAll(/`([A-Z]\w+)\.([a-zA-Z]\w*)[^`\n]*`/g))
      .filter(([, module = "", name = ""]) =>
        declared.get(module)?.has(name) === false && !["ts", "test"].includes(name) && module !== "Redacted"
      )
    expect(unknown.map(([name]) => name)).toEqual([])
  })
})
