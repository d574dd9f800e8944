/**
 * The import paths of public names: each package's index exports its public modules and nothing else, and a name of a
 * public module is not also exported by another module of its package.
 */
import { describe, expect, it } from "@effect/vitest"
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"

const root = join(import.meta.dirname, "../packages")

const packages = readdirSync(root).filter((name) => existsSync(join(root, name, "src/index.ts"))).toSorted()

const modulesOf = (name: string): ReadonlyArray<string> =>
  readdirSync(join(root, name, "src"))
    .filter((file) => file.endsWith(".ts") && file !== "index.ts")
    .map((file) => file.slice(0, -".ts".length))
    .toSorted()

describe.each(packages)("@skein/%s", (name) => {
  it("exports exactly its public modules from its index", () => {
    const lines = readFileSync(join(root, name, "src/index.ts"), "utf8").trim().split("\n")
    expect(lines.toSorted()).toEqual(modulesOf(name).map((module) => `export * as ${module} from "./${module}.ts"`))
  })

  it("has one import path for each name", async () => {
    const found = new Map<unknown, Map<string, Array<string>>>()
    for (const module of modulesOf(name)) {
      const exports: Record<string, unknown> = await import(join(root, name, "src", `${module}.ts`))
      for (const [exported, value] of Object.entries(exports)) {
        if (typeof value !== "object" && typeof value !== "function") continue
        const paths = found.get(value) ?? new Map<string, Array<string>>()
        found.set(value, paths.set(exported, [...paths.get(exported) ?? [], `${module}.${exported}`]))
      }
    }
    const repeated = [...found.values()].flatMap((paths) => [...paths.values()]).filter(({ length }) => length > 1)
    expect(repeated).toEqual([])
  })
})
