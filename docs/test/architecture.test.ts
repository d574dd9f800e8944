/** `architecture.md` against the code: every `file: function` that it names exists. */
import { describe, expect, it } from "@effect/vitest"
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { layers, mayImport } from "../../scripts/layers.ts"
import { docs, read } from "./blocks.ts"

const page = read("architecture.md")
const packages = join(docs, "../packages")

/** The path of a module that the page names by its package and its path in `src`. */
const pathOf = (name: string): string => join(packages, name.replace("/", "/src/"))

const hops = Array.from(
  page.matchAll(/`([a-z-]+\/[\w/]+\.ts): ([\w.#]+)`/g),
  ([, file = "", name = ""]) => ({ file, name })
)

/** Whether a source declares a function, a class, a constant or a method of this name. */
const declares = (source: string, name: string): boolean => {
  const escaped = name.replaceAll(/[#$]/g, "\\$&")
  const declaration = `(?:const|class|interface|function|get|readonly) ${escaped}\\b`
  const method = `^  (?:static |override |async )*${escaped}(?:<[^>]*>)?\\(`
  const property = `^  (?:readonly )?${escaped}\\b[^\\n]*=`
  return new RegExp(`${declaration}|${method}|${property}`, "m").test(source)
}

/** The body of a class, an interface or an object of the top level. */
const bodyOf = (source: string, name: string): string => {
  const [, body = ""] =
    new RegExp(`^(?:export )?(?:abstract )?(?:class|interface|const) ${name}\\b[^]*?\\{$([^]*?)^\\}`, "m").exec(
      source
    ) ?? []
  return body
}

describe("architecture.md", () => {
  it("names at least 40 functions by their files", () => {
    expect(hops.length).toBeGreaterThanOrEqual(40)
  })

  it.each(hops)("names an existing function: $file: $name", ({ file, name }) => {
    const path = pathOf(file)
    expect(existsSync(path)).toBe(true)
    const source = readFileSync(path, "utf8")
    const [first = "", member] = name.split(".")
    expect(declares(source, first)).toBe(true)
    if (member !== undefined) expect(declares(bodyOf(source, first), member)).toBe(true)
  })

  it("names existing files", () => {
    const named = Array.from(page.matchAll(/`([a-z-]+\/[\w/]+\.ts)`/g), ([, file = ""]) => file)
    expect(named.length).toBeGreaterThan(20)
    expect(named.filter((file) => !existsSync(pathOf(file)) && !existsSync(join(docs, "..", file)))).toEqual([])
  })

  it("lists the packages", () => {
    const section = page.slice(page.indexOf("## Packages"), page.indexOf("## Layers"))
    const listed = Array.from(section.matchAll(/^- `([\w-]+)`:/gm), ([, name = ""]) => name)
    expect(listed.toSorted()).toEqual(Object.keys(mayImport).toSorted())
    expect(listed.toSorted()).toEqual(readdirSync(packages).toSorted())
  })

  it("lists the layers of the client's pipeline in their order", () => {
    const source = readFileSync(pathOf("client/internal/client/pipeline.ts"), "utf8")
    const [, body = ""] = /layers: ReadonlyArray<CallLayer> = \[([^\]]*)\]/.exec(source) ?? []
    const layers = Array.from(body.matchAll(/^  (\w+),?$/gm), ([, name = ""]) => name)
    const section = page.slice(page.indexOf("## The client's call pipeline"), page.indexOf("## Where to change what"))
    const rows = Array.from(section.matchAll(/^- `(\w+)`:/gm), ([, name = ""]) => name)
    expect(layers.length).toBeGreaterThan(5)
    expect(rows).toEqual(layers)
  })

  it("leads to the layers, each with its rule", () => {
    expect(page).toContain("`scripts/layers.ts`")
    const rows = Object.entries(layers).flatMap(([name, rows]) =>
      Object.entries(rows).map(([layer, { rule }]) => ({ rule, layer: `${name}/${layer}` }))
    )
    expect(rows.filter(({ rule }) => rule === undefined).map(({ layer }) => layer)).toEqual(["create-skein/all"])
  })

  it("leads to a glossary with at most twenty terms of Skein", () => {
    const [own = ""] = read("glossary.md").split("## Terms of the specification")
    const rows = own.split("\n").filter((line) => line.startsWith("- **"))
    expect(rows.length).toBeGreaterThan(10)
    expect(rows.length).toBeLessThanOrEqual(20)
    expect(page).toContain("](glossary.md)")
  })
})
