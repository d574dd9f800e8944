/**
 * Fewer files for a program to find, read and link: what every program loads of a package becomes two files, its core, and its base
 * for what needs no schema.
 *
 * Each public module stays a file of its own name, which passes on what these have of it and holds the rest. What several others
 * share is a file of its own: beyond its base and core, nothing is loaded with a module that it does not import. What is imported
 * on demand stays on demand. No module is ever in two files, and none of another package in any.
 */
import { existsSync, readdirSync } from "node:fs"
import { readFile } from "node:fs/promises"
import { basename, join, relative } from "node:path"
import { type InputOptions, type OutputChunk, type Plugin, rolldown } from "rolldown"
import type { SourceMap } from "./annotate.ts"

/** One package, as the compiler wrote it. A module is called by its path without an ending, as in `internal/line`. */
export interface Room {
  readonly folder: string
  /** What may be imported or run by its name. */
  readonly entries: ReadonlyArray<string>
  /** What each module imports when it is loaded: its own package's modules, and other packages' by the name in the import. */
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

/** The compiler leaves `export {}` of a module of types. */
const empty: SourceMap = { version: 3, names: [], sources: [], mappings: "", file: "", sourceRoot: undefined }

/** The public modules, but for the index that only names them, and the programs. */
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

/** Hands over what the compiler wrote together with the map that it wrote beside it. */
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
  // All that has a bare name: other packages, and what is Node's.
  external: (id) => /^(@|[a-z]+[:/]|[a-z]+$)/.test(id),
  tsconfig: false,
  // By our word nothing has effects when it is loaded; here all that may have some is kept, in its order.
  treeshake: { moduleSideEffects: true },
  preserveEntrySignatures: "strict",
  logLevel: "warn"
})

/** Reads what the modules of a package import. */
export const read = async (folder: string): Promise<Room> => {
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
 * The core of each package, by its name: all that is loaded with the modules that are named as its heads, and with those that the
 * cores of the packages above it import. The rooms come the lowest first.
 */
export const cores = (
  rooms: ReadonlyArray<Room>,
  heads: Readonly<Record<string, ReadonlyArray<string>>>
): ReadonlyMap<string, ReadonlySet<string>> => {
  const found = new Map<string, Set<string>>()
  const wanted = new Map(Object.entries(heads).map(([name, modules]) => [name, [...modules]]))
  for (const room of rooms.toReversed()) {
    const name = basename(room.folder)
    const core = new Set<string>()
    const left = wanted.get(name) ?? []
    for (let module = left.pop(); module !== undefined; module = left.pop()) {
      if (core.has(module)) continue
      core.add(module)
      for (const other of room.imports.get(module) ?? []) {
        const [, above, within] = /^@skein\/(\w+)\/(\w+)$/.exec(other) ?? []
        if (room.imports.has(other)) left.push(other)
        else if (other.startsWith("node:")) throw new Error(`${name}: ${module} is of the core, and loads ${other}`)
        else if (above !== undefined && within !== undefined) wanted.set(above, [...wanted.get(above) ?? [], within])
      }
    }
    found.set(name, core)
  }
  return found
}

/**
 * What in a core needs a schema, by package. It is most of the core, and much of Effect is loaded with it: whoever asks for nothing
 * of it should not get it.
 */
export const schematic = (rooms: ReadonlyArray<Room>): ReadonlyMap<string, ReadonlySet<string>> => {
  const found = new Map<string, Set<string>>()
  for (const room of rooms) {
    const those = new Set<string>()
    found.set(basename(room.folder), those)
    const isThose = (other: string): boolean => {
      const [, below, within] = /^@skein\/(\w+)\/(\w+)$/.exec(other) ?? []
      return below === undefined || within === undefined
        ? other.startsWith("effect/Schema") || those.has(other)
        : found.get(below)?.has(within) === true
    }
    for (let before = -1; before < those.size;) {
      before = those.size
      for (const [module, imports] of room.imports) if (imports.some(isThose)) those.add(module)
    }
  }
  return found
}

/** A part of a file says where it is from. A line stays a line, for the map. */
const signed = (code: string): string =>
  code.replaceAll(/^\/\/ \.tsbuild\/(.*)\.js$/gm, "// src/$1.ts").replaceAll(/^\/\/ \\0.*$/gm, "//")

/** Makes the files of a package's `dist` from what the compiler wrote. They are not annotated yet. */
export const group = async (
  room: Room,
  core: ReadonlySet<string>,
  schematic: ReadonlySet<string>
): Promise<ReadonlyArray<File>> => {
  const isBase = (module: string): boolean => core.has(module) && !schematic.has(module)
  const bundle = await rolldown({ ...options(room.folder, room.entries), plugins: [mapped] })
  const { output } = await bundle.generate({
    dir: join(room.folder, "dist"),
    format: "esm",
    sourcemap: "hidden",
    entryFileNames: "[name].js",
    chunkFileNames: "internal/[name].js",
    minifyInternalExports: false,
    codeSplitting: {
      groups: [
        // First, for a group takes along what its modules import.
        { name: "base", test: (id) => isBase(moduleOf(room.folder, id)), priority: 1 },
        { name: "core", test: (id) => core.has(moduleOf(room.folder, id)) }
      ]
    }
  })
  await bundle.close()
  return output.filter((file): file is OutputChunk => file.type === "chunk").map((
    { code, fileName, map, moduleIds }
  ) => ({
    path: fileName,
    code: code.trim() === "" ? "export {}\n" : signed(code),
    map: map === null ? empty : JSON.parse(map.toString()) as SourceMap,
    modules: moduleIds.map((id) => moduleOf(room.folder, id))
  }))
}
