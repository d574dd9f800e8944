/**
 * Prints the figures of the structure of the packages: `npm run structure`. `npm run structure -- <folder>` prints
 * those of another checkout, so that two can be compared.
 */
import { globSync, readFileSync } from "node:fs"
import { join, posix, resolve } from "node:path"
import { parseSync, Visitor } from "rolldown/utils"
import { circles, grouped, layerOf, readModules } from "./imports.ts"
import { layers } from "./layers.ts"
import { publicModules } from "./publicModules.ts"

interface Figures {
  /** Lines of code in `src`, without comments and blank lines. */
  readonly lines: number
  readonly files: number
  readonly medianLines: number
  readonly largestFile: number
  /** Modules in circles. Imports of types and `import()` count. */
  readonly modulesInCircles: number
  /** Folders and public modules in circles, where each public module counts on its own. */
  readonly foldersInCircles: number
  /** Folders and layers in circles, where a public module belongs to its layer. Packages without layers have no figure. */
  readonly layersInCircles: number | undefined
  /** Lines with `new Proxy`. */
  readonly proxies: number
  /** The names of optional bounds and times in the interfaces that public modules export. */
  readonly options: ReadonlySet<string>
  /** The same with the interfaces that internal modules export. */
  readonly allOptions: ReadonlySet<string>
}

/** Returns the source without comments and blank lines. */
const codeOf = (path: string, text: string): ReadonlyArray<string> => {
  let from = 0
  const code = parseSync(path, text).comments.map(({ end, start }) => {
    const before = text.slice(from, start)
    from = end
    return before
  })
  return [...code, text.slice(from)].join("").split("\n").filter((line) => line.trim() !== "")
}

const boundName = /^(max|min)|(Timeout|Interval|Delay|Lifetime|Age|Ms|Seconds|Chars|Bytes|Size|Mark)$/
const boundType = /^:\s*(number|Duration\.\w+)(\s*\|\s*("\w+"|\w+(\.\w+)?))*$/

/** Returns the names of the optional bounds and times of a module's exported interfaces and types. */
const optionsOf = (path: string, text: string): ReadonlyArray<string> => {
  const { program } = parseSync(path, text)
  const found: Array<string> = []
  const visitor = new Visitor({
    TSPropertySignature: ({ key, optional, typeAnnotation }) => {
      if (!optional || typeAnnotation == null || key.type !== "Identifier") return
      const type = text.slice(typeAnnotation.start, typeAnnotation.end)
      if (boundType.test(type) && (type.includes("Duration") || boundName.test(key.name))) found.push(key.name)
    }
  })
  for (const statement of program.body) {
    const declared = statement.type === "ExportNamedDeclaration" ? statement.declaration?.type : undefined
    if (declared === "TSInterfaceDeclaration" || declared === "TSTypeAliasDeclaration") {
      visitor.visit({ ...program, body: [statement] })
    }
  }
  return found
}

const count = (found: ReadonlyArray<ReadonlyArray<string>>): number => found.flat().length

/** Returns the figures of one package. */
const figuresOf = (root: string, name: string, hasLayers: boolean): Figures => {
  const src = join(root, "packages", name, "src")
  const modules = readModules(src)
  const paths = globSync("**/*.ts", { cwd: src }).toSorted()
  const texts = paths.map((path) => [path, readFileSync(join(src, path), "utf8")] as const)
  const code = texts.map(([path, text]) => codeOf(path, text))
  const sizes = code.map(({ length }) => length).toSorted((one, other) => one - other)
  const rows = hasLayers ? layers[name] : undefined
  const isPublic = new Set(publicModules(join(root, "packages", name)).map(({ path }) => `${path}.ts`))
  const folder = (path: string): string | undefined => path.includes("/") ? posix.dirname(path) : undefined
  return {
    lines: sizes.reduce((sum, size) => sum + size, 0),
    files: sizes.length,
    medianLines: sizes[Math.floor(sizes.length / 2)] ?? 0,
    largestFile: sizes.at(-1) ?? 0,
    modulesInCircles: count(circles(modules)),
    foldersInCircles: count(circles(grouped(modules, (path) => folder(path) ?? path))),
    layersInCircles: rows === undefined
      ? undefined
      : count(circles(grouped(modules, (path) => layerOf(rows, path)))) + count(circles(grouped(modules, folder))),
    proxies: code.flat().filter((line) => /\bnew Proxy\b/.test(line)).length,
    options: new Set(texts.flatMap(([path, text]) => isPublic.has(path) ? optionsOf(path, text) : [])),
    allOptions: new Set(texts.flatMap(([path, text]) => optionsOf(path, text)))
  }
}

if (import.meta.main) {
  const own = join(import.meta.dirname, "..")
  const root = resolve(process.argv[2] ?? own)
  const names = globSync("packages/*/src", { cwd: root }).map((path) => path.split("/")[1]!).toSorted()
  const figures = names.map((name) => [name, figuresOf(root, name, root === own)] as const)
  const sum = (of: (figures: Figures) => number): number => figures.reduce((sum, [, each]) => sum + of(each), 0)
  const distinct = (of: (figures: Figures) => ReadonlySet<string>): number =>
    new Set(figures.flatMap(([, each]) => [...of(each)])).size
  const table = [
    ...figures.map(([name, { allOptions, options, ...rest }]) => ({
      package: name,
      ...rest,
      options: options.size,
      allOptions: allOptions.size
    })),
    {
      package: "all (distinct options)",
      lines: sum(({ lines }) => lines),
      files: sum(({ files }) => files),
      modulesInCircles: sum(({ modulesInCircles }) => modulesInCircles),
      foldersInCircles: sum(({ foldersInCircles }) => foldersInCircles),
      layersInCircles: sum(({ layersInCircles }) => layersInCircles ?? 0),
      proxies: sum(({ proxies }) => proxies),
      options: distinct(({ options }) => options),
      allOptions: distinct(({ allOptions }) => allOptions)
    }
  ]
  console.table(Object.fromEntries(table.map(({ package: name, ...rest }) => [name, rest])))
}
