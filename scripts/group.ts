/**
 * Groups the modules of a package into fewer files, so that a program starts faster: Node finds, reads and links each
 * file separately. The modules that every program loads become two files, `core` and `base`. `base` contains those that
 * need no schema.
 *
 * Each public module has a file of its name, which re-exports its part of these two files and contains the rest.
 * Internal modules that several others import have files of their own, so that a module loads only its imports, the
 * core and the base. A dynamic import stays dynamic. No module is in two files, and no file contains a module of
 * another package.
 */
import { existsSync, readdirSync } from "node:fs"
import { readFile } from "node:fs/promises"
import { basename, join, relative } from "node:path"
import { type InputOptions, type OutputChunk, type Plugin, rolldown } from "rolldown"
import type { SourceMap } from "./annotate.ts"

/** The compiler's output for one package. A module is named by its path without extension, as in `internal/line`. */
export interface Package {
  readonly folder: string
  /** The public modules and the programs. */
  readonly entries: ReadonlyArray<string>
  /**
   * The static imports of each module: modules of its own package, and other packages by the specifier of the import.
   */
  readonly imports: ReadonlyMap<string, ReadonlyArray<string>>
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

/** Returns the public modules except the index, and the programs. */
const entriesOf = (folder: string): ReadonlyArray<string> =>
  ["", "bin/"].flatMap((within) => {
    const from = join(folder, "src", within)
    return (existsSync(from) ? readdirSync(from) : [])
      .filter((file) => file.endsWith(".ts") && file !== "index.ts")
      .map((file) => `${within}${basename(file, ".ts")}`)
      .toSorted()
  })

const moduleOf = (folder: string, id: string): string =>
  relative(join(folder, compiled), id).replaceAll("\\", "/").replace(/\.js$/, "")

/** Loads the compiler's output with its source map. */
const mapped: Plugin = {
  name: "mapped",
  load: {
    filter: { id: /\.js$/ },
    handler: async (id) => ({
      code: (await readFile(id, "utf8")).replace(/\n\/\/# sourceMappingURL=.*\s*$/, "\n"),
      map: await readFile(`${id}.map`, "utf8")
    })
  }
}

const options = (folder: string, entries: ReadonlyArray<string>): InputOptions => ({
  cwd: folder,
  input: Object.fromEntries(entries.map((entry) => [entry, join(folder, compiled, `${entry}.js`)])),
  platform: "neutral",
  // Every bare specifier: other packages, and Node's modules.
  external: (id) => /^(@|[a-z][a-z\d-]*([:/]|$))/.test(id),
  tsconfig: false,
  // package.json declares that modules have no side effects. Code that may have some is still kept here, in its order.
  treeshake: { moduleSideEffects: true },
  preserveEntrySignatures: "strict",
  logLevel: "warn"
})

/** Reads the imports of the modules of a package. */
export const read = async (folder: string): Promise<Package> => {
  const entries = entriesOf(folder)
  const imports = new Map<string, ReadonlyArray<string>>()
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
      }
    }
  }
  const bundle = await rolldown({ ...options(folder, entries), plugins: [mapped, reader] })
  await bundle.generate()
  await bundle.close()
  return { folder, entries, imports }
}

/**
 * Returns the core of each package, by name: every module that is loaded with its entry modules or with the cores of
 * the packages above. `packages` must be in the order of their imports, the lowest first.
 */
export const cores = (
  packages: ReadonlyArray<Package>,
  entryModules: Readonly<Record<string, ReadonlyArray<string>>>
): ReadonlyMap<string, ReadonlySet<string>> => {
  const found = new Map<string, Set<string>>()
  const wanted = new Map(Object.entries(entryModules).map(([name, modules]) => [name, [...modules]]))
  for (const { folder, imports } of packages.toReversed()) {
    const name = basename(folder)
    const core = new Set<string>()
    const left = wanted.get(name) ?? []
    for (let module = left.pop(); module !== undefined; module = left.pop()) {
      if (core.has(module)) continue
      core.add(module)
      for (const other of imports.get(module) ?? []) {
        const [, above, within] = /^@skein\/(\w+)\/(\w+)$/.exec(other) ?? []
        if (imports.has(other)) left.push(other)
        else if (other.startsWith("node:")) {
          throw new Error(`${name}: ${module} is in the core and imports ${other}, but the core must run without Node`)
        } else if (above !== undefined && within !== undefined) wanted.set(above, [...wanted.get(above) ?? [], within])
      }
    }
    found.set(name, core)
  }
  return found
}

/**
 * Returns the modules that need a schema, by package. Most modules of a core are among them, and they load much of
 * Effect. A module that needs no schema must not load them.
 */
export const withSchema = (packages: ReadonlyArray<Package>): ReadonlyMap<string, ReadonlySet<string>> => {
  const found = new Map<string, Set<string>>()
  for (const { folder, imports } of packages) {
    const modules = new Set<string>()
    found.set(basename(folder), modules)
    const needsSchema = (other: string): boolean => {
      const [, below, within] = /^@skein\/(\w+)\/(\w+)$/.exec(other) ?? []
      return below === undefined || within === undefined
        ? other.startsWith("effect/Schema") || modules.has(other)
        : found.get(below)?.has(within) === true
    }
    for (let before = -1; before < modules.size;) {
      before = modules.size
      for (const [module, others] of imports) if (others.some(needsSchema)) modules.add(module)
    }
  }
  return found
}

/**
 * Names the source in the comment above each part of a file. The number of lines does not change, for the source map.
 */
const withSources = (code: string): string =>
  code.replaceAll(/^\/\/ \.tsbuild\/(.*)\.js$/gm, "// src/$1.ts").replaceAll(/^\/\/ \\0.*$/gm, "//")

/** Creates the files of a package's `dist` from the compiler's output, without annotations. */
export const group = async (
  pkg: Package,
  core: ReadonlySet<string>,
  withSchema: ReadonlySet<string>
): Promise<ReadonlyArray<File>> => {
  const isBase = (module: string): boolean => core.has(module) && !withSchema.has(module)
  const bundle = await rolldown({ ...options(pkg.folder, pkg.entries), plugins: [mapped] })
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
        { name: "base", test: (id) => isBase(moduleOf(pkg.folder, id)), priority: 1 },
        { name: "core", test: (id) => core.has(moduleOf(pkg.folder, id)) }
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
    modules: moduleIds.map((id) => moduleOf(pkg.folder, id))
  }))
}
