/** The rows of `parity` against the exports of `@skein/*` and of `skein`. */
import { describe, expect, it } from "@effect/vitest"
import { globSync, readFileSync } from "node:fs"
import { join } from "node:path"
import {
  counterpartsOf,
  entries,
  type Exports,
  headOf,
  memberRows,
  membersOf,
  modules,
  packages,
  pagePath,
  render,
  tables
} from "../../../scripts/parity.ts"

const folder = join(import.meta.dirname, "..")

const all = [...(await tables()).values()].flat()
const memberTable = await memberRows()
const membersOfType = membersOf()
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

  it("has each export of a module whose counterpart is one object, or the reason", async () => {
    const wrong: Array<string> = []
    for (const [module, skein] of all) {
      const values = known.get(module)?.values
      if (typeof skein !== "string" || values === undefined || values.size < 2 || !/^[\w$]+$/.test(skein)) continue
      const found = Array.from(exported).find(([, exports]) => exports.values.has(skein))
      if (found === undefined) continue
      const loaded = (await import(join(folder, "src", `${found[0]}.ts`)))[skein] as unknown
      // A function is the counterpart of a module whose layer it makes.
      if (typeof loaded !== "object" || loaded === null) continue
      const missing = memberTable.find(([effect]) => effect === module)?.[2] ?? {}
      // A class has one export of its name, and an object the functions of the module.
      const absent = [...values].filter((name) => name !== skein && !(name in loaded))
      for (const name of [...absent, ...Object.keys(missing)]) {
        if (absent.includes(name) !== name in missing) wrong.push(`${module}.${name}`)
      }
    }
    expect(wrong).toEqual([])
  })

  it("has the members of each class and interface, or the reason", () => {
    const wrong: Array<string> = []
    for (const [effect, skein, missing = {}] of memberTable) {
      const [module, name] = split(effect)
      if (name === undefined) continue
      const theirs = membersOfType(module, name)
      const [, part] = module.split("/")
      const entry = part === "server" ? "index" : part!
      const ours = entry === undefined ? undefined : membersOfType(entry, skein)
      if (theirs === undefined || theirs.size === 0 || ours === undefined) {
        wrong.push(`${effect}, ${skein}: no members`)
        continue
      }
      const absent = [...theirs].filter((member) => !ours.has(member))
      for (const member of new Set([...absent, ...Object.keys(missing)])) {
        if (absent.includes(member) !== member in missing) wrong.push(`${effect}.${member}`)
      }
    }
    expect(wrong).toEqual([])
  })

  it("compares the members of each class that has a counterpart, errors excepted", () => {
    const compared = new Set(memberTable.map(([effect]) => effect))
    const absent = all.flatMap(([effect, skein]) => {
      const [module, name] = split(effect)
      if (typeof skein !== "string" || name === undefined || name.endsWith("Error") || compared.has(effect)) return []
      return name === module.split("/").at(-1) && (membersOfType(module, name)?.size ?? 0) > 0 ? [effect] : []
    })
    expect(absent).toEqual([])
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
