/**
 * Checks the imports of the packages against their layers (`scripts/layers.ts`), and rejects circles between modules
 * and between folders and public modules. In contrast to the linter, it follows `import()` and `import("…").Type`, resolves each path, and
 * checks that each module belongs to a layer.
 */
import { globSync, readFileSync } from "node:fs"
import { join, posix } from "node:path"
import { parseSync, Visitor } from "rolldown/utils"
import { allowedLayers, foldersOf, type Layers, layers, maxDepth } from "./layers.ts"

/** The modules of one package: each path below `src`, with the paths below `src` that it imports. */
export type Modules = ReadonlyMap<string, ReadonlySet<string>>

/** Returns the specifiers of all imports of a module: static, `export from`, `import()` and types. */
const specifiersOf = (path: string, text: string): ReadonlyArray<string> => {
  const { module, program } = parseSync(path, text)
  const found = [
    ...module.staticImports.map(({ moduleRequest }) => moduleRequest.value),
    ...module.staticExports.flatMap(({ entries }) => entries.flatMap(({ moduleRequest }) => moduleRequest?.value ?? []))
  ]
  new Visitor({
    ImportExpression: ({ source }) => {
      if (source.type === "Literal") found.push(String(source.value))
    },
    TSImportType: ({ source }) => {
      found.push(source.value)
    }
  }).visit(program)
  return found
}

/** Reads the modules of a package. */
export const readModules = (src: string): Modules =>
  new Map(
    globSync("**/*.ts", { cwd: src }).map((path) => path.replaceAll("\\", "/")).toSorted().map((path) => {
      const specifiers = specifiersOf(path, readFileSync(join(src, path), "utf8"))
      const imports = specifiers.filter((specifier) => specifier.startsWith("."))
        .map((specifier) => posix.join(posix.dirname(path), specifier))
      return [path, new Set(imports)]
    })
  )

/** Returns the circles of a graph: the sets of nodes that reach each other (Tarjan's strongly connected components). */
export const circles = (graph: ReadonlyMap<string, ReadonlySet<string>>): ReadonlyArray<ReadonlyArray<string>> => {
  const found: Array<ReadonlyArray<string>> = []
  const [indexes, lows, stack] = [new Map<string, number>(), new Map<string, number>(), new Array<string>()]
  const visit = (node: string): number => {
    const index = indexes.size
    indexes.set(node, index)
    lows.set(node, index)
    stack.push(node)
    for (const next of graph.get(node) ?? []) {
      if (!graph.has(next) || next === node) continue
      const low = indexes.has(next) ? (stack.includes(next) ? indexes.get(next)! : index) : visit(next)
      lows.set(node, Math.min(lows.get(node)!, low))
    }
    if (lows.get(node) === index) {
      const component = stack.splice(stack.indexOf(node))
      if (component.length > 1) found.push(component.toSorted())
    }
    return lows.get(node)!
  }
  for (const node of graph.keys()) if (!indexes.has(node)) visit(node)
  return found
}

/** Returns the graph of the groups of a graph. Modules without a group are left out. */
export const grouped = (modules: Modules, groupOf: (path: string) => string | undefined): Modules => {
  const groups = new Map<string, Set<string>>()
  for (const [path, imports] of modules) {
    const from = groupOf(path)
    if (from === undefined) continue
    const to = groups.get(from) ?? new Set()
    groups.set(from, to)
    for (const target of imports) {
      const group = groupOf(target)
      if (group !== undefined) to.add(group)
    }
  }
  return groups
}

/** Returns the folder of an internal module. Public modules, which lie in `src`, have none. */
const folderOf = (path: string): string | undefined => path.includes("/") ? posix.dirname(path) : undefined

const isWithin = (folder: string, path: string): boolean => folder === "." || path.startsWith(`${folder}/`)

/** Returns the layer of a module: the one that lists its name, else the one of the innermost folder around it. */
export const layerOf = (rows: Layers, path: string): string | undefined => {
  const entries = Object.entries(rows)
  const named = entries.find(([, { modules = [] }]) => modules.some((module) => path === `${module}.ts`))
  if (named !== undefined) return named[0]
  const around = entries.flatMap(([name, layer]) =>
    foldersOf(name, layer).filter((folder) => isWithin(folder, path)).map((folder) => ({ folder, name }))
  )
  return around.toSorted((one, other) => other.folder.length - one.folder.length)[0]?.name
}

/** Returns the problems of the table itself: modules without a layer or with two, and rows without a module. */
const rowProblems = (rows: Layers, modules: Modules): ReadonlyArray<string> => {
  const entries = Object.entries(rows)
  const paths = [...modules.keys()]
  const named = entries.flatMap(([, { modules = [] }]) => modules.map((module) => `${module}.ts`))
  const folders = entries.flatMap(([name, layer]) => foldersOf(name, layer))
  const isDeep = (path: string): boolean =>
    Math.min(
      ...folders.filter((folder) => isWithin(folder, path)).map((folder) =>
        posix.relative(folder, posix.dirname(path)).split("/").length
      )
    ) > maxDepth
  return [
    ...paths.filter((path) => layerOf(rows, path) === undefined).map((path) =>
      `${path}: belongs to no layer: add it to one in scripts/layers.ts`
    ),
    ...paths.filter((path) => layerOf(rows, path) !== undefined && path.includes("/") && isDeep(path)).map((path) =>
      `${path}: is more than ${maxDepth} folders below the folder of its layer`
    ),
    ...[...named, ...folders].filter((each, at, all) => all.indexOf(each) !== at).map((each) =>
      `${each}: is listed in two layers`
    ),
    ...named.filter((path) => !modules.has(path)).map((path) => `${path}: is listed in a layer, and does not exist`),
    ...folders.filter((folder) => !paths.some((path) => isWithin(folder, path))).map((folder) =>
      `${folder}/: is the folder of a layer, and has no module`
    )
  ]
}

/** Returns the imports that point to a layer above or beside. */
const layerProblems = (rows: Layers, modules: Modules): ReadonlyArray<string> =>
  [...modules].flatMap(([path, imports]) => {
    const from = layerOf(rows, path)
    if (from === undefined) return []
    const allowed = allowedLayers(rows, from)
    return [...imports].flatMap((target) => {
      const to = modules.has(target) ? layerOf(rows, target) : undefined
      return to === undefined || allowed.includes(to)
        ? []
        : [`${path}: imports ${target} of layer "${to}", which layer "${from}" may not import`]
    })
  })

/** Returns the problems of one package. */
export const problemsOf = (rows: Layers, modules: Modules): ReadonlyArray<string> => [
  ...rowProblems(rows, modules),
  ...layerProblems(rows, modules),
  ...circles(modules).map((paths) => `circle of modules: ${paths.join(", ")}`),
  ...circles(grouped(modules, (path) => folderOf(path) ?? path))
    .map((paths) => `circle of folders and public modules: ${paths.join(", ")}`)
]

if (import.meta.main) {
  const root = join(import.meta.dirname, "..")
  const found = globSync("*", { cwd: join(root, "packages") }).toSorted().flatMap((name) => {
    const rows = layers[name]
    if (rows === undefined) return [`packages/${name}: has no layers`]
    const problems = problemsOf(rows, readModules(join(root, "packages", name, "src")))
    return problems.map((text) => `packages/${name}/src: ${text}`)
  })
  for (const text of found) console.error(text)
  process.exitCode = found.length === 0 ? 0 : 1
}
