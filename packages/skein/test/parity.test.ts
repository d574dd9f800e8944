/** The rows of `parity` against the exports of `@skein/*` and of `skein`. */
import { describe, expect, it } from "@effect/vitest"
import { globSync, readFileSync } from "node:fs"
import { join } from "node:path"
import {
  counterpartsOf,
  entries,
  type Exports,
  headOf,
  modules,
  packages,
  pagePath,
  render,
  tables
} from "../../../scripts/parity.ts"

const folder = join(import.meta.dirname, "..")

const all = [...(await tables()).values()].flat()
const named = new Set(all.map(([effect]) => effect))
const known = modules()
const exported = entries()
const counterparts = all.flatMap(([, skein]) => typeof skein === "string" ? counterpartsOf(skein) : [])

/** The exports that only `skein` has: frameworks take the handlers of `@skein/server` as they are. */
const onlyInSkein: ReadonlySet<string> = new Set(["expressHandler", "fastifyPlugin", "honoHandler"])

/** Splits the name of an export: `@skein/auth/Protect` and `make`. */
const split = (effect: string): readonly [module: string, name: string | undefined] => {
  const [module, name] = effect.split(".")
  return [module!, name]
}

const has = ({ types, values }: Exports, name: string): boolean => types.has(name) || values.has(name)

/** The sources of `skein`, in which types are looked up. */
const sources = globSync("src/internal/**/*.ts", { cwd: folder }).map((path) =>
  readFileSync(join(folder, path), "utf8")
)

/** Whether a type or a class of `skein` declares a member. */
const declares = (type: string, member: string): boolean => {
  const declared = new RegExp(`^export (interface|class) ${type}\\b[^]*?^}`, "m")
  return sources.some((source) => new RegExp(`[\\s(]#?${member}[?(<:]`).test(declared.exec(source)?.[0] ?? ""))
}

describe("parity", () => {
  it("has rows of modules and exports that exist", () => {
    const wrong = all.filter(([effect]) => {
      const [module, name] = split(effect)
      const exports = known.get(module)
      return exports === undefined || (name !== undefined && !has(exports, name))
    })
    expect(wrong).toEqual([])
    const effects = all.map(([effect]) => effect)
    expect(effects.filter((effect, index) => effects.indexOf(effect) !== index)).toEqual([])
  })

  it.each(packages)("has a row for each module or export of @skein/%s", (name) => {
    const absent = Array.from(known).flatMap(([module, { values }]) => {
      if (!module.startsWith(`@skein/${name}/`) || named.has(module)) return []
      if (values.size === 0) return [module]
      return [...values].map((value) => `${module}.${value}`).filter((effect) => !named.has(effect))
    })
    expect(absent).toEqual([])
  })

  it("names exports of skein that exist, and their members", async () => {
    const wrong: Array<string> = []
    for (const skein of counterparts) {
      const head = headOf(skein)
      const member = /^[\w$]+\.([\w$]+)/.exec(skein)?.[1]
      const found = Array.from(exported).find(([, exports]) => has(exports, head))
      const loaded = found?.[1].values.has(head) === true
        ? (await import(join(folder, "src", `${found[0]}.ts`)))[head] as { readonly prototype?: object }
        : undefined
      const isMember = member === undefined || (loaded !== undefined && Object.hasOwn(loaded, member)) ||
        (loaded?.prototype !== undefined && member in loaded.prototype) || declares(head, member)
      if (found === undefined || !isMember) wrong.push(skein)
    }
    expect(wrong).toEqual([])
  })

  it("has a row for each value that an entry of skein exports", () => {
    const heads = new Set(counterparts.map(headOf))
    const absent = Array.from(exported).flatMap(([entry, { values }]) =>
      [...values].filter((name) => !heads.has(name) && !onlyInSkein.has(name)).map((name) => `${entry}: ${name}`)
    )
    expect(absent).toEqual([])
    expect([...onlyInSkein].filter((name) => heads.has(name))).toEqual([])
  })

  it("has the page of the rows: run npm run parity", async () => {
    expect(readFileSync(pagePath, "utf8")).toBe(await render())
  })
})
