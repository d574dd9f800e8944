/**
 * Compares the API of the package `skein` with that of the packages that use Effect, by the rows of
 * `packages/skein/parity`: each row has a module of a package, or one of its exports, and its counterpart in `skein` or the
 * reason why there is none.
 *
 * `npm run parity` writes `packages/skein/PARITY.md`; `packages/skein/test/parity.test.ts` fails when the page, the rows and
 * the exports differ.
 */
import { globSync, readFileSync, writeFileSync } from "node:fs"
import { basename, dirname, join } from "node:path"
import { parseSync } from "rolldown/utils"
import { makeMemberNames, resolveRelative } from "./memberNames.ts"
import { publicModules } from "./publicModules.ts"

/** A module or an export of a package, and its counterpart. */
export type Row = readonly [effect: string, skein: string | { readonly missing: string }]

/** A class or an interface of a package, its counterpart, and the members without a counterpart with their reasons. */
export type Members = readonly [effect: string, skein: string, missing?: Readonly<Record<string, string>>]

const root = join(import.meta.dirname, "..")

export const pagePath = join(root, "packages/skein/PARITY.md")

/** The packages whose modules have rows. */
export const packages = [
  "server",
  "client",
  "tasks",
  "auth",
  "openapi",
  "gateway",
  "testing",
  "sql",
  "protocol",
  "runtime"
]

/** The names that a module exports: values and types. */
export interface Exports {
  readonly values: ReadonlySet<string>
  readonly types: ReadonlySet<string>
}

/** Returns the exports of a module, those of the modules that it exports as a whole included. */
export const exportsOf = (path: string): Exports => {
  const values = new Set<string>()
  const types = new Set<string>()
  const { module } = parseSync(path, readFileSync(path, "utf8"))
  for (
    const { exportName, importName, isType, moduleRequest } of module.staticExports.flatMap(({ entries }) => entries)
  ) {
    const from = moduleRequest?.value.startsWith(".") === true
      ? exportsOf(join(dirname(path), moduleRequest.value))
      : undefined
    if (importName.kind === "AllButDefault") {
      for (const name of from?.values ?? []) (isType ? types : values).add(name)
      for (const name of from?.types ?? []) types.add(name)
    } else if (exportName.name !== null) {
      const isTypeThere = importName.kind === "Name" && from !== undefined && !from.values.has(importName.name!)
      ;(isType || isTypeThere ? types : values).add(exportName.name)
    }
  }
  return { values, types }
}

/** The exports of each public module of the packages, by its import path. */
export const modules = (): ReadonlyMap<string, Exports> =>
  new Map(packages.flatMap((name) => {
    const folder = join(root, "packages", name)
    return publicModules(folder).map((module) =>
      [`@skein/${name}/${module.name}`, exportsOf(join(folder, "src", `${module.path}.ts`))] as const
    )
  }))

/** The exports of each entry of `skein`, by the name of its file. */
export const entries = (): ReadonlyMap<string, Exports> =>
  new Map(
    globSync("packages/skein/src/*.ts", { cwd: root }).toSorted().map((path) =>
      [basename(path, ".ts"), exportsOf(join(root, path))] as const
    )
  )

/** The rows of each file. */
export const tables = async (): Promise<ReadonlyMap<string, ReadonlyArray<Row>>> => {
  const paths = globSync("packages/skein/parity/!(members).ts", { cwd: root }).toSorted()
  return new Map(
    await Promise.all(paths.map(async (path) => {
      const { rows } = await import(join(root, path)) as { readonly rows: ReadonlyArray<Row> }
      return [basename(path, ".ts"), rows] as const
    }))
  )
}

/** The rows of members. */
export const memberRows = async (): Promise<ReadonlyArray<Members>> =>
  (await import(join(root, "packages/skein/parity/members.ts")) as { readonly members: ReadonlyArray<Members> }).members

/** Returns the members of a type: of a module such as `@skein/server/State`, or of an entry of `skein`. */
export const membersOf = (): (module: string, type: string) => ReadonlySet<string> | undefined => {
  const files = new Map<string, string>(packages.flatMap((name) => {
    const folder = join(root, "packages", name)
    return publicModules(folder).map((module) =>
      [`@skein/${name}/${module.name}`, join(folder, "src", `${module.path}.ts`)] as const
    )
  }))
  const names = makeMemberNames((specifier, from) => files.get(specifier) ?? resolveRelative(specifier, from))
  return (module, type) => names(files.get(module) ?? join(root, "packages/skein/src", `${module}.ts`), type)
}

/** The counterparts of a row: one, or several with `and` between them. */
export const counterpartsOf = (skein: string): ReadonlyArray<string> => skein.split(" and ")

/** The export of `skein` that a counterpart begins with: `tasks` of `tasks().admin`. */
export const headOf = (skein: string): string => /^[\w$]+/.exec(skein)?.[0] ?? ""

const code = (text: string): string => `\`${text}\``

/** The part of a name after its package, which a title has. */
const short = (effect: string): string => effect.split("/").slice(2).join("/")

/** Writes a table without spaces: the formatter would fill all columns up. */
const tableOf = (rows: ReadonlyArray<Row>, name: string): string => {
  const found = rows.filter((row): row is readonly [string, string] => typeof row[1] === "string")
  const lines = found.map(([effect, skein]) => `|${code(short(effect))}|${counterpartsOf(skein).map(code).join(", ")}|`)
  return ["<!-- dprint-ignore -->", `|\`@skein/${name}\`|\`skein\`|`, "|-|-|", ...lines].join("\n")
}

/**
 * The names of the modules and exports without a counterpart that have the same reason. Exports of a module that all have it
 * are one name.
 */
const namesOf = (effects: ReadonlyArray<string>, rows: ReadonlyArray<Row>): ReadonlyArray<string> => {
  const moduleOf = (effect: string) => effect.split(".")[0]!
  const ofModule = (effect: string, names: ReadonlyArray<string>) =>
    names.filter((name) => name.startsWith(`${moduleOf(effect)}.`)).length
  const all = rows.map(([effect]) => effect)
  const missing = rows.flatMap(([effect, skein]) => typeof skein === "string" ? [] : [effect])
  const names = effects.map((effect) => {
    const isOne = ofModule(effect, effects) > 1 && ofModule(effect, effects) === ofModule(effect, missing)
    if (!isOne) return short(effect)
    return ofModule(effect, all) === ofModule(effect, missing)
      ? short(moduleOf(effect))
      : `${short(moduleOf(effect))}.*`
  })
  return [...new Set(names)].map(code)
}

/** The modules and exports without a counterpart, by their reasons. */
const missingOf = (rows: ReadonlyArray<Row>): string => {
  const byReason = new Map<string, Array<string>>()
  for (const [effect, skein] of rows) {
    if (typeof skein === "string") continue
    byReason.set(skein.missing, [...byReason.get(skein.missing) ?? [], effect])
  }
  return Array.from(byReason, ([reason, effects]) => `- ${namesOf(effects, rows).join(", ")}: ${reason}.`).join("\n")
}

/** Writes the page. */
export const render = async (): Promise<string> => {
  const all = [...(await tables()).values()].flat()
  const byReason = new Map<string, Set<string>>()
  for (const [effect, , missing = {}] of await memberRows()) {
    for (const [member, reason] of Object.entries(missing)) {
      byReason.set(reason, (byReason.get(reason) ?? new Set()).add(code(`${short(effect)}.${member}`)))
    }
  }
  const members = Array.from(byReason, ([reason, names]) => `- ${[...names].join(", ")}: ${reason}.`)
  const sections = packages.flatMap((name) => {
    const rows = all.filter(([effect]) => effect.startsWith(`@skein/${name}/`))
      .toSorted(([one], [other]) => one < other ? -1 : 1)
    if (rows.length === 0) return []
    const hasTable = rows.some(([, skein]) => typeof skein === "string")
    const parts = [...hasTable ? [tableOf(rows, name)] : [], missingOf(rows)].filter((part) => part !== "")
    return [`## ${name}\n\n${parts.join("\n\n")}\n`]
  })
  return `# The API of skein and that of @skein/*

Each module of \`@skein/*\`, or its export, and the export of \`skein\` in its place. The lists have those without one, and
the reasons; \`*\` stands for the other exports of a module. \`npm run parity\` writes this page of the rows in \`parity\`, and a
test compares them with the exports.

${sections.join("\n")}
## Members

Members of classes and interfaces without a counterpart:

${members.join("\n")}
`
}

if (process.argv[1] === import.meta.filename) writeFileSync(pagePath, await render())
