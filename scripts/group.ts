/**
 * Groups the modules of a package into fewer files, so that a program starts faster: Node finds, reads and links each
 * file separately. The modules that every program loads become one file, `core`. In the packages that other packages
 * build on, those that need no schema are in a file `base` instead.
 *
 * Each public module has a file of its name, which re-exports its part of these files and contains the rest. Internal
 * modules that several others import have files of their own, so that a module loads only its imports and the groups. A
 * dynamic import stays dynamic. No module is in two files, and no file contains a module of another package.
 */
import { existsSync, readdirSync } from "node:fs"
import { readFile } from "node:fs/promises"
import { basename, join, relative } from "node:path"
import { publicModules } from "./publicModules.ts"
import { type InputOptions, type OutputChunk, type Plugin, rolldown } from "rolldown"
import type { SourceMap } from "./annotate.ts"

/** The compiler's output for one package. A module is named by its path without extension, as in `internal/line`. */
export interface Package {
  readonly folder: string
  /** The public modules and the programs. */
  readonly entries: ReadonlyArray<string>
  /** The public module of each import specifier: `client/OAuth` of `@skein/auth/OAuth`. */
  readonly specifiers: ReadonlyMap<string, string>
  /**
   * The static imports of each module: modules of its own package, and other packages by the specifier of the import.
   */
  readonly imports: ReadonlyMap<string, ReadonlyArray<string>>
  /** The modules with a dynamic import. */
  readonly lazy: ReadonlySet<string>
}

/** One file of a `dist`. */
export interface File {
  /** Its path in the `dist`. */
  readonly path: string
  readonly code: string
  readonly map: SourceMap
  /** The modules in it. */
  readonly modules: ReadonlyArray<string>
}

const compiled = ".tsbuild"

/** The map of a module of types, for which the compiler writes only `export {}`. */
const empty: SourceMap = { version: 3, names: [], sources: [], mappings: "", file: "", sourceRoot: undefined }

const programsOf = (folder: string): ReadonlyArray<string> => {
  const from = join(folder, "src/bin")
  return (existsSync(from) ? readdirSync(from) : []).map((file) => `bin/${basename(file, ".ts")}`).toSorted()
}

const moduleOf = (folder: string, id: string): string =>
  relative(join(folder, compiled), id).replaceAll("\\", "/").replace(/\.js$/, "")

/** Reads a module of the compiler's output, with its source map. */
export const readCompiled = async (path: string): Promise<{ readonly code: string; readonly map: SourceMap }> => ({
  code: (await readFile(path, "utf8")).replace(/\n\/\/# sourceMappingURL=.*\s*$/, ""),
  map: JSON.parse(await readFile(`${path}.map`, "utf8")) as SourceMap
})

/** Loads the compiler's output with its source map. */
const mapped: Plugin = {
  name: "mapped",
  load: {
    filter: { id: /\.js$/ },
    handler: async (id) => {
      const { code, map } = await readCompiled(id)
      return { code: `${code}\n`, map: JSON.stringify(map) }
    }
  }
}

/** Every bare specifier: other packages, and Node's modules. */
const isExternal = (id: string): boolean => /^(@|[a-z][a-z\d-]*([:/]|$))/.test(id)

const options = (folder: string, entries: ReadonlyArray<string>): InputOptions => ({
  cwd: folder,
  input: Object.fromEntries(entries.map((entry) => [entry, join(folder, compiled, `${entry}.js`)])),
  platform: "neutral",
  external: isExternal,
  tsconfig: false,
  // package.json declares that modules have no side effects. Code that may have some is still kept here, in its order.
  treeshake: { moduleSideEffects: true },
  preserveEntrySignatures: "strict",
  logLevel: "warn"
})

/** Reads the imports of the modules of a package. */
export const read = async (folder: string): Promise<Package> => {
  const modules = publicModules(folder)
  const entries = [...modules.map(({ path }) => path), ...programsOf(folder)]
  const specifiers = new Map(modules.map(({ name, path }) => [`@skein/${basename(folder)}/${name}`, path]))
  const imports = new Map<string, ReadonlyArray<string>>()
  const lazy = new Set<string>()
  const reader: Plugin = {
    name: "reader",
    buildEnd() {
      for (const id of this.getModuleIds()) {
        const info = this.getModuleInfo(id)
        if (info === null || !id.endsWith(".js")) continue
        imports.set(
          moduleOf(folder, id),
          info.importedIds.map((other) => other.endsWith(".js") ? moduleOf(folder, other) : other)
        )
        if (info.dynamicallyImportedIds.length > 0) lazy.add(moduleOf(folder, id))
      }
    }
  }
  const bundle = await rolldown({ ...options(folder, entries), plugins: [mapped, reader] })
  await bundle.generate()
  await bundle.close()
  return { folder, entries, specifiers, imports, lazy }
}

/** A public module of another package. */
interface ModuleBelow {
  readonly name: string
  readonly module: string
}

/** Returns the public module of a specifier in one of the packages. */
const moduleBelow = (packages: ReadonlyArray<Package>, specifier: string): ModuleBelow | undefined => {
  for (const { folder, specifiers } of packages) {
    const module = specifiers.get(specifier)
    if (module !== undefined) return { name: basename(folder), module }
  }
  return undefined
}

/**
 * Returns the modules that need a schema, by package. Most modules of a core are among them, and they load much of
 * Effect. A module that needs no schema must not load them.
 */
const withSchema = (packages: ReadonlyArray<Package>): ReadonlyMap<string, ReadonlySet<string>> => {
  const found = new Map<string, Set<string>>()
  for (const { folder, imports } of packages) {
    const modules = new Set<string>()
    found.set(basename(folder), modules)
    const needsSchema = (other: string): boolean => {
      const below = moduleBelow(packages, other)
      return below === undefined
        ? other.startsWith("effect/Schema") || modules.has(other)
        : found.get(below.name)?.has(below.module) === true
    }
    for (let before = -1; before < modules.size;) {
      before = modules.size
      for (const [module, others] of imports) if (others.some(needsSchema)) modules.add(module)
    }
  }
  return found
}

/** Returns the modules of each package, by name, that a program loads with these modules. */
const loaded = (
  packages: ReadonlyArray<Package>,
  modules: Readonly<Record<string, ReadonlyArray<string>>>
): ReadonlyMap<string, Set<string>> => {
  const found = new Map<string, Set<string>>()
  const wanted = new Map(Object.entries(modules).map(([name, modules]) => [name, [...modules]]))
  for (const { folder, imports } of packages.toReversed()) {
    const name = basename(folder)
    const all = new Set<string>()
    const left = wanted.get(name) ?? []
    for (let module = left.pop(); module !== undefined; module = left.pop()) {
      if (all.has(module)) continue
      all.add(module)
      for (const other of imports.get(module) ?? []) {
        const below = moduleBelow(packages, other)
        if (imports.has(other)) left.push(other)
        else if (below !== undefined) wanted.set(below.name, [...wanted.get(below.name) ?? [], below.module])
      }
    }
    found.set(name, all)
  }
  return found
}

/** The groups of a package: no module is in two of them. */
export interface Groups {
  /** The modules that every program loads. */
  readonly core: ReadonlySet<string>
  /** In a package without entry modules: those modules of the core that need no schema. */
  readonly base: ReadonlySet<string>
}

/**
 * Returns the groups of each package, by name: the modules that are loaded with the entry modules of the packages.
 * `packages` must be in the order of their imports, the lowest first.
 *
 * A module with a dynamic import is in no group, and neither are the modules of its package that import it: rolldown
 * includes the targets of the dynamic imports of a file of which a program uses a part, although the program does not
 * use the part with these imports, and then cannot write the program as one file.
 */
export const groups = (
  packages: ReadonlyArray<Package>,
  entryModules: Readonly<Record<string, ReadonlyArray<string>>>
): ReadonlyMap<string, Groups> => {
  const all = loaded(packages, entryModules)
  const withSchemas = withSchema(packages)
  return new Map(packages.map(({ folder, imports, lazy }) => {
    const name = basename(folder)
    const core = all.get(name)!
    for (const module of core) {
      const other = imports.get(module)?.find((other) => other.startsWith("node:"))
      if (other !== undefined) {
        throw new Error(`${name}: ${module} is in the core and imports ${other}, but the core must run without Node`)
      }
    }
    const isOut = (module: string): boolean =>
      lazy.has(module) || imports.get(module)?.some((other) => imports.has(other) && !core.has(other)) === true
    for (let before = -1; before !== core.size;) {
      before = core.size
      for (const module of core) if (isOut(module)) core.delete(module)
    }
    const schemas = withSchemas.get(name)!
    const base = new Set(name in entryModules ? [] : [...core].filter((module) => !schemas.has(module)))
    for (const module of base) core.delete(module)
    return [name, { base, core }]
  }))
}

/**
 * Names the source in the comment above each part of a file. The number of lines does not change, for the source map.
 */
const withSources = (code: string): string =>
  code.replaceAll(/^\/\/ \.tsbuild\/(.*)\.js$/gm, "// src/$1.ts").replaceAll(/^\/\/ \\0.*$/gm, "//")

/**
 * Returns the files of a package that only re-export names of its groups: the code of each, by the specifier of its
 * import.
 */
export const reexports = (folder: string, files: ReadonlyArray<File>): ReadonlyMap<string, string> => {
  const name = `@skein/${basename(folder)}`
  return new Map(
    files
      .filter(({ code, modules, path }) => modules.length === 0 && !path.includes("/") && code.includes("/internal/"))
      .map(({ code, path }) => [
        `${name}/${basename(path, ".js")}`,
        code.replaceAll(/"\.\/(internal\/\w+)\.js"/g, `"${name}/$1"`)
      ])
  )
}

/**
 * Creates the files of a package's `dist` from the compiler's output, without annotations. `below` are the re-exports of
 * the packages that it imports: its files import the groups of these packages instead, because Node finds, reads and
 * links each file separately.
 */
export const group = async (
  pkg: Package,
  { base, core }: Groups,
  below: ReadonlyMap<string, string>
): Promise<ReadonlyArray<File>> => {
  const inlinedId = (id: string): string | undefined =>
    id.startsWith("\0") && below.has(id.slice(1)) ? id.slice(1) : undefined
  const inlined: Plugin = {
    name: "inlined",
    resolveId: (id) => below.has(id) ? { id: `\0${id}`, moduleSideEffects: false } : null,
    load: (id) => {
      const specifier = inlinedId(id)
      return specifier === undefined ? null : below.get(specifier)!
    }
  }
  const within = (group: ReadonlySet<string>, id: string): boolean => group.has(moduleOf(pkg.folder, id))
  // Names of a base need no schema.
  const isBase = (id: string): boolean => {
    const specifier = inlinedId(id)
    return specifier === undefined ? within(base, id) : base.size > 0 && !below.get(specifier)!.includes("/core\"")
  }
  const bundle = await rolldown({
    ...options(pkg.folder, pkg.entries),
    external: (id) => isExternal(id) && !below.has(id),
    plugins: [inlined, mapped]
  })
  const { output } = await bundle.generate({
    dir: join(pkg.folder, "dist"),
    format: "esm",
    sourcemap: "hidden",
    entryFileNames: "[name].js",
    chunkFileNames: "internal/[name].js",
    minifyInternalExports: false,
    codeSplitting: {
      groups: [
        // First, because a group includes the imports of its modules.
        { name: "base", test: isBase, priority: 1 },
        { name: "core", test: (id) => within(core, id) || inlinedId(id) !== undefined }
      ]
    }
  })
  await bundle.close()
  return output.filter((file): file is OutputChunk => file.type === "chunk").map((
    { code, fileName, map, moduleIds }
  ) => ({
    path: fileName,
    code: code.trim() === "" ? "export {}\n" : withSources(code),
    map: map === null ? empty : JSON.parse(map.toString()) as SourceMap,
    modules: moduleIds.filter((id) => inlinedId(id) === undefined).map((id) => moduleOf(pkg.folder, id))
  }))
}
