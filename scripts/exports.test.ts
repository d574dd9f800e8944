/**
 * The import paths of public names: each public module has one, and a name of a public module is not also exported by
 * another module of its package.
 */
import { describe, expect, it } from "@effect/vitest"
import { existsSync, globSync, readdirSync, readFileSync } from "node:fs"
import { basename, join } from "node:path"
import { publicModules } from "./publicModules.ts"

const root = join(import.meta.dirname, "../packages")

const packages = readdirSync(root).filter((name) => existsSync(join(root, name, "package.json"))).toSorted()

/** The modules with a capital name outside of folders named `internal`. */
const capitalModules = (name: string): ReadonlyArray<string> =>
  globSync("**/[A-Z]*.ts", { cwd: join(root, name, "src"), exclude: ["**/internal/**"] })
    .map((file) => file.replaceAll("\\", "/").slice(0, -".ts".length))
    .toSorted()

/** The modules of the package `skein`, which are its entries. */
const entryModules = (): ReadonlyArray<string> =>
  globSync("*.ts", { cwd: join(root, "skein/src") }).map((file) => file.slice(0, -".ts".length)).toSorted()

/** The `paths` of the compiler for the public modules of a package, in `tsconfig.base.json`. */
const compilerPaths = (name: string): Readonly<Record<string, string>> =>
  Object.fromEntries(
    Array.from(
      readFileSync(join(root, "../tsconfig.base.json"), "utf8").matchAll(/"(@skein\/[^"]+)": \["([^"]+)"\]/g),
      ([, specifier = "", path = ""]) => [specifier, path] as const
    ).filter(([specifier]) => specifier.startsWith(`@skein/${name}/`))
  )

describe.each(packages)("the package %s", (name) => {
  it("exports each module with a capital name by this name, and no other", () => {
    const modules = publicModules(join(root, name))
    const expected = name === "skein" ? entryModules() : capitalModules(name)
    expect(modules.map(({ path }) => path).toSorted()).toEqual(expected)
    for (const { name, path } of modules) expect(basename(path)).toBe(name)
  })

  it("exports the source, the declarations and the code of the same module", () => {
    const { exports } = JSON.parse(readFileSync(join(root, name, "package.json"), "utf8")) as {
      readonly exports: Readonly<Record<string, unknown>>
    }
    const entryOf = (path: string) => ({
      "@skein/source": `./src/${path}.ts`,
      types: `./dist/${path}.d.ts`,
      // Bundlers take the code without the lines that start Node's compile cache.
      ...(name === "skein" ? { module: `./dist/code/${path}.js` } : undefined),
      default: `./dist/${path}.js`
    })
    const pathOf = new Map(publicModules(join(root, name)).map(({ name, path }) => [`./${name}`, path]))
    for (const [subpath, target] of Object.entries(exports)) {
      if (typeof target !== "object" || target === null) continue
      expect(target).toEqual(
        entryOf(subpath === "./*" ? "*" : pathOf.get(subpath === "." ? "./index" : subpath)!)
      )
    }
  })

  it("resolves its import paths to the same modules for the compiler", () => {
    // No package imports those without the prefix.
    if (name === "create-skein" || name === "skein") return
    const modules = publicModules(join(root, name))
    const isFlat = modules.every(({ name, path }) => name === path)
    expect(compilerPaths(name)).toEqual(
      Object.fromEntries(
        (isFlat ? [{ name: "*", path: "*" }] : modules)
          .map((module) => [`@skein/${name}/${module.name}`, `./packages/${name}/src/${module.path}.ts`])
      )
    )
  })

  it("has one import path for each name", async () => {
    const found = new Map<unknown, Map<string, Array<string>>>()
    for (const { name: module, path } of publicModules(join(root, name))) {
      const exports: Record<string, unknown> = await import(join(root, name, "src", `${path}.ts`))
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
