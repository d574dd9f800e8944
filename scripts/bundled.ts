/**
 * Builds the package `skein`: all that its entries need, Effect and the other packages included, in a few minified files
 * without dependencies. Code that several entries need is in shared files.
 *
 * An entry for Node is a file of a few lines. It switches the compile cache of Node on, which has an effect on code that
 * is compiled afterwards, and loads the rest. Bundlers get the rest directly, by the condition `module`. The functions that run
 * when a program starts are marked for that cache ([eager](./eager.ts)).
 *
 * The declarations are bundled, too. The build fails if one of them needs a type of another package.
 */
import { chmod, cp, mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises"
import { builtinModules, isBuiltin } from "node:module"
import { basename, dirname, join, relative } from "node:path"
import {
  type InputOptions,
  type OutputChunk,
  type OutputOptions,
  type Plugin,
  rolldown,
  type RolldownOutput
} from "rolldown"
import { dts } from "rolldown-plugin-dts"
import { esmExternalRequirePlugin } from "rolldown/plugins"
import { annotate } from "./annotate.ts"
import { breakLines } from "./breakLines.ts"
import { compileAtLoad } from "./eager.ts"
import { readCompiled } from "./group.ts"
import { publicModules } from "./publicModules.ts"

/** The programs of the package, by the name of their file, with the module that has their `main`. */
const programs: Readonly<Record<string, string>> = { skein: "@skein/cli/Skein" }

/** Modules that are files of their own in `code`, because their path is given to a bundler or to Node. */
const fileModules: Readonly<Record<string, string>> = {
  folderServer: "packages/cli/.tsbuild/internal/develop/folderServer.js",
  stdioProgram: "packages/testing/.tsbuild/internal/stdioProgram.js"
}

/**
 * A module without WebSockets in the place of `ws`, which Effect's server of HTTP imports for WebSockets. The routes of a server have
 * none, and a bundler leaves the package in the bundle although nothing uses it.
 */
const unused = "skein:unused"

/**
 * The modules of Node that a bundler for browsers does not have are imported by a few files in `code/node` only. The others
 * import these by this name (`imports` of `package.json`), so that such a bundler finds `code/withoutNode.js` in their place.
 * It is as long as `./node/`, which keeps the source maps valid.
 */
const nodeFolder = "#skein/"

/** Packages that only tests of an application need, and install themselves: `DevServer` of `skein/auth` loads this one. */
const outside = new Set(["oidc-provider"])

/** Returns the folder of the package in `node_modules` that has a file. */
const packageOf = (path: string): string | undefined => {
  const at = path.lastIndexOf("/node_modules/")
  if (at === -1) return undefined
  const [scope, name] = path.slice(at + "/node_modules/".length).split("/")
  return path.slice(0, at) + "/node_modules/" + (scope!.startsWith("@") ? `${scope}/${name}` : scope)
}

/**
 * The text of an entry for Node. Deno, and older versions of Bun, have no compile cache. `require` of an ES module needs no
 * top-level `await`, so that a CommonJS program can require the entry, too. A name may be a reserved word, such as `enum`
 * of `skein/zod`.
 */
const starter = (file: string, names: ReadonlyArray<string>): string =>
  `import * as module from "node:module"
module.enableCompileCache?.()
const code = module.createRequire(import.meta.url)("${file}")
const { ${names.map((name, at) => `${name}: e${at}`).join(", ")} } = code
export { ${names.map((name, at) => `e${at} as ${name}`).join(", ")} }
`

const keptNames = { class: true, function: false }

const isChunk = (file: RolldownOutput["output"][number]): file is OutputChunk => file.type === "chunk"

/** Fails for a module that is neither bundled nor a part of Node. */
const onlyNode = (imports: Iterable<string>): void => {
  for (const name of imports) {
    if (!isBuiltin(name) && !name.startsWith(".") && !name.endsWith(".js") && !outside.has(name)) {
      throw new Error(`the package skein must not import ${name}: bundle it`)
    }
  }
}

/** Writes the licenses of the packages that are bundled. */
const writeNotices = async (folder: string, modules: Iterable<string>): Promise<void> => {
  const folders = new Set<string>()
  for (const module of modules) {
    const found = packageOf(module)
    if (found !== undefined) folders.add(found)
  }
  const notices: Array<string> = []
  for (const path of [...folders].toSorted()) {
    const { license, name, version } = JSON.parse(await readFile(join(path, "package.json"), "utf8")) as {
      readonly license?: string
      readonly name?: string
      readonly version?: string
    }
    const file = (await readdir(path)).find((file) => /^licen[cs]e/i.test(file))
    const text = file === undefined ? "" : (await readFile(join(path, file), "utf8")).trim()
    notices.push(`${name} ${version} (${license})\n\n${text}`.trim())
  }
  await writeFile(join(folder, "dist", "NOTICES.txt"), `${notices.join(`\n\n${"-".repeat(80)}\n\n`)}\n`)
}

/**
 * Resolves a package `@skein/*` to the compiler's output, and marks the calls at the top level of each module as pure. `dist`
 * of the packages has one file for the modules that their users always load together, and more is needed here.
 */
const compiled = (packages: string): Plugin => {
  const files = new Map<string, string>()
  const loaded = new Map<string, Promise<{ readonly code: string; readonly map: string }>>()
  const load = async (id: string) => {
    const { code, map } = await readCompiled(id)
    const annotated = await annotate(code, id, map)
    return { code: annotated.code, map: JSON.stringify(annotated.map) }
  }
  return {
    name: "compiled",
    resolveId: (source) => {
      if (source === "ws") return unused
      const [, name, module] = /^@skein\/([^/]+)\/(.+)$/.exec(source) ?? []
      if (name === undefined) return undefined
      if (!files.has(source)) {
        for (const { name: module, path } of publicModules(join(packages, name))) {
          files.set(`@skein/${name}/${module}`, join(packages, name, ".tsbuild", `${path}.js`))
        }
      }
      const file = files.get(source)
      if (file === undefined) throw new Error(`${module} is not a public module of @skein/${name}`)
      return file
    },
    load: {
      filter: { id: [/^skein:unused$/, /[/\\]\.tsbuild[/\\].*\.js$/] },
      handler: (id) => {
        if (id === unused) return { code: "export let WebSocket, WebSocketServer", moduleType: "js" }
        const found = loaded.get(id) ?? load(id)
        loaded.set(id, found)
        return found
      }
    }
  }
}

/**
 * The modules with which a server on stdio starts, the one that it loads for the requests after `initialize`, and those with
 * which a client starts. It loads the second ones at once.
 */
const starts = {
  server: ["skein/.tsbuild/index.js", "server/.tsbuild/Stdio.js"],
  requests: ["server/.tsbuild/internal/dispatch/dispatcher.js"],
  client: ["skein/.tsbuild/client.js", "client/.tsbuild/Http.js", "client/.tsbuild/Stdio.js"]
}

/** The imports of a module. */
interface Imports {
  /** The modules that it loads before it runs. */
  readonly direct: ReadonlyArray<string>
  readonly all: ReadonlyArray<string>
}

/** Collects the imports of each module. */
const collecting = (imports: Map<string, Imports>): Plugin => ({
  name: "collecting",
  moduleParsed: ({ dynamicallyImportedIds, id, importedIds }) =>
    void imports.set(id, { direct: importedIds, all: [...importedIds, ...dynamicallyImportedIds] })
})

const usesNode = (imports: Imports | undefined): boolean => imports?.direct.some((name) => isBuiltin(name)) === true

/** Returns the modules that cannot run without the modules of Node, because they or their imports import some. */
const needingNode = (imports: ReadonlyMap<string, Imports>): ReadonlySet<string> => {
  const found = new Set(Array.from(imports).flatMap(([id, from]) => usesNode(from) ? [id] : []))
  for (let before = -1; before !== found.size;) {
    before = found.size
    for (const [id, { direct }] of imports) if (direct.some((name) => found.has(name))) found.add(id)
  }
  return found
}

/** Returns the modules that some modules load, at once or later. */
const reachedFrom = (files: ReadonlyArray<string>, imports: ReadonlyMap<string, Imports>): ReadonlySet<string> => {
  const found = new Set(files)
  for (const id of found) for (const name of imports.get(id)?.all ?? []) found.add(name)
  return found
}

/**
 * The text of the module without Node. It has each export of the files in `code/node`, and any use of one fails.
 */
const withoutNode = (names: Iterable<string>): string =>
  `const fail = () => { throw new Error("this function of skein needs Node, Bun or Deno: the program was bundled for browsers or Workers") }
const missing = new Proxy(fail, { get: fail, construct: fail })
export { ${[...names].map((name) => `missing as ${name}`).join(", ")} }
`

/** Lets the files of a bundle import those in `code/node` by the name of the package, and writes the module in their place. */
const separateNode = async (dist: string, chunks: ReadonlyArray<OutputChunk>): Promise<void> => {
  const isNode = (path: string): boolean => path.startsWith("code/node/")
  for (const { dynamicImports, fileName, imports } of chunks) {
    if (isNode(fileName) || ![...imports, ...dynamicImports].some(isNode)) continue
    const path = join(dist, fileName)
    const code = await readFile(path, "utf8")
    await writeFile(path, code.replaceAll(/(?<=["'`])\.\/node\/(?=[\w-]+\.js["'`])/g, nodeFolder))
  }
  const names = chunks.flatMap(({ exports, fileName }) => isNode(fileName) ? exports : [])
  await writeFile(join(dist, "code/withoutNode.js"), withoutNode(new Set(names)))
}

/** Returns the modules that some modules load before they run, themselves included, and that have any code. */
const loadedBy = (chunks: ReadonlyArray<OutputChunk>, modules: ReadonlyArray<string>): ReadonlySet<string> => {
  const found = new Set<OutputChunk>()
  const add = (chunk: OutputChunk | undefined): void => {
    if (chunk === undefined || found.has(chunk)) return
    found.add(chunk)
    for (const path of chunk.imports) add(chunks.find(({ fileName }) => fileName === path))
  }
  for (const module of modules) add(chunks.find(({ facadeModuleId }) => facadeModuleId?.endsWith(`/${module}`)))
  return new Set(
    Array.from(found).flatMap(({ modules }) =>
      Object.entries(modules).flatMap(([id, { renderedLength }]) => renderedLength > 0 ? [id] : [])
    )
  )
}

/** Breaks the lines of a file, and changes its source map, or removes it. */
const shorten = async (file: string, isMapped: boolean): Promise<void> => {
  const written = await readFile(file, "utf8")
  const text = isMapped ? written : written.replace(/\n\/\/# sourceMappingURL=.*\s*$/, "\n")
  if (!isMapped) await rm(`${file}.map`, { force: true })
  const map = isMapped ? JSON.parse(await readFile(`${file}.map`, "utf8")) as { readonly mappings: string } : undefined
  const { code, mappings } = breakLines(text, map?.mappings ?? "")
  await writeFile(file, code)
  if (map !== undefined) await writeFile(`${file}.map`, JSON.stringify({ ...map, mappings }))
}

/** Bundles the code of the entries. */
const bundleCode = async (
  folder: string,
  entries: Readonly<Record<string, string>>
): Promise<ReadonlyArray<string>> => {
  const dist = join(folder, "dist")
  const input: InputOptions = {
    input: { ...entries },
    cwd: folder,
    platform: "neutral",
    tsconfig: false,
    resolve: { conditionNames: ["node", "import", "module", "default"], mainFields: ["module", "main"] },
    external: [...outside],
    // A `require` of a module of Node becomes an import. The one that a bundler makes needs Node, also where nothing calls it.
    plugins: [compiled(dirname(folder)), esmExternalRequirePlugin({ external: [/^node:/, ...builtinModules] })],
    treeshake: { moduleSideEffects: [{ external: true, sideEffects: false }] },
    checks: { pluginTimings: false },
    onLog: (level, log, handler) => {
      // A dependency may have an optional import that is not installed, such as `pg-native`.
      if (log.code === "UNRESOLVED_IMPORT") throw new Error(log.message)
      // A module that one entry loads when it needs it may be loaded at once by another entry.
      if (log.code === "INEFFECTIVE_DYNAMIC_IMPORT") return
      handler(level, log)
    }
  }
  const options: OutputOptions = {
    dir: dist,
    format: "esm",
    // Stacks have the names of errors, which cost 1 % of the size.
    minify: { compress: { keepNames: keptNames }, mangle: { keepNames: keptNames }, codegen: true },
    keepNames: false,
    sourcemap: true,
    sourcemapExcludeSources: true,
    entryFileNames: "code/[name].js",
    hashCharacters: "hex"
  }
  // Node needs time for each file. So the modules that a server loads when it starts are in one file, those that it loads
  // later in a second, and those of a client in a third. Modules of a server and of a client are in two files of their own, and
  // those of a client that need modules of Node are apart.
  const imports = new Map<string, Imports>()
  const first = await rolldown({ ...input, plugins: [input.plugins, collecting(imports)] })
  const split = (await first.generate({ ...options, minify: false, sourcemap: false })).output.filter(isChunk)
  await first.close()
  const needsNode = needingNode(imports)
  const libraryFiles = Object.entries(entries).flatMap(([name, path]) =>
    name in programs || name in fileModules ? [] : [path]
  )
  const library = reachedFrom(libraryFiles, imports)
  const server = loadedBy(split, starts.server)
  const requests = loadedBy(split, starts.requests)
  const client = loadedBy(split, starts.client)
  const groupOf = (id: string): string | null => {
    const isOfClient = client.has(id)
    if (server.has(id)) return isOfClient ? "core" : "server"
    if (requests.has(id)) return isOfClient ? "messages" : "requests"
    return isOfClient ? needsNode.has(id) ? "nodeHost" : "host" : null
  }
  // An entry may then export what only other files use. `split` has the names that it exports for programs.
  const bundle = await rolldown({ ...input, preserveEntrySignatures: "allow-extension" })
  const { output } = await bundle.write({
    ...options,
    chunkFileNames: ({ moduleIds }) =>
      moduleIds.some((id) => usesNode(imports.get(id)) && library.has(id))
        ? "code/node/[name]-[hash].js"
        : "code/[name]-[hash].js",
    codeSplitting: { includeDependenciesRecursively: false, groups: [{ name: groupOf }] }
  })
  await bundle.close()
  const chunks = output.filter(isChunk)
  onlyNode(chunks.flatMap(({ dynamicImports, imports }) => [...imports, ...dynamicImports]))
  await separateNode(dist, chunks)
  for (const { fileName, isEntry, map, name } of chunks) {
    // Zod is the library of another author: its map, a twentieth of the package, explains no error of Skein.
    await shorten(join(dist, fileName), map !== null && name !== "zod")
    if (!isEntry || name in fileModules) continue
    if (name in programs) {
      await mkdir(join(dist, "bin"), { recursive: true })
      const program = join(dist, "bin", `${name}.js`)
      await writeFile(
        program,
        `#!/usr/bin/env node\n${starter(`../${fileName}`, [])}code.main(process.argv.slice(2))\n`
      )
      await chmod(program, 0o755)
      continue
    }
    const { exports } = split.find((chunk) => chunk.isEntry && chunk.name === name)!
    await writeFile(join(dist, `${name}.js`), starter(`./${fileName}`, exports))
  }
  return chunks.flatMap(({ moduleIds }) => moduleIds)
}

const zodTypes = join(import.meta.dirname, "../node_modules/zod/index.d.ts")

/**
 * Finds declarations, in whose imports the compiler leaves `.ts`. Types of Effect stay outside of the bundle. Remembers which
 * modules import them.
 */
const finding = (importers: Map<string, Set<string>>): Plugin => ({
  name: "declarations",
  resolveId: {
    order: "pre",
    handler: (source, importer) => {
      if (importer === undefined) return undefined
      // The package of Zod names its declarations for CommonJS, which cannot be bundled.
      if (source === "zod") return zodTypes
      if (importer.startsWith(dirname(zodTypes)) && source.startsWith(".")) {
        return join(dirname(importer), source.replace(/\.js$/, ".d.ts"))
      }
      if (/^(?:effect|@effect)\//.test(source)) {
        importers.set(source, (importers.get(source) ?? new Set()).add(importer))
        return { id: source, external: true }
      }
      return /^\..*(?<!\.d)\.ts$/.test(source) ? join(dirname(importer), source.replace(/\.ts$/, ".d.ts")) : undefined
    }
  }
})

/** Bundles the declarations of the entries. */
const bundleTypes = async (folder: string, entries: Readonly<Record<string, string>>): Promise<void> => {
  const importers = new Map<string, Set<string>>()
  const bundle = await rolldown({
    input: { ...entries },
    cwd: folder,
    platform: "node",
    tsconfig: false,
    treeshake: { moduleSideEffects: false },
    resolve: { conditionNames: ["types", "node", "import", "default"] },
    plugins: [finding(importers), dts({ dtsOnly: true, generator: "oxc", tsconfig: false })],
    external: [...builtinModules, /^node:/],
    checks: { pluginTimings: false }
  })
  const { output } = await bundle.write({
    dir: join(folder, "dist"),
    format: "esm",
    entryFileNames: "[name].d.ts",
    chunkFileNames: "types/[name]-[hash].d.ts"
  })
  await bundle.close()
  for (const { code, fileName, moduleIds } of output.filter(isChunk)) {
    // `imports` of the chunk also has the modules of which nothing is left.
    const imports = Array.from(code.matchAll(/^(?:import|export)\b.*\bfrom "([^"]+)"|\bimport\("([^"]+)"\)/gm))
    for (const [, stated, inline] of imports) {
      const name = (stated ?? inline)!
      const from = moduleIds.filter((id) => importers.get(name)?.has(id)).map((id) => `\n  ${relative(folder, id)}`)
      if (from.length > 0) throw new Error(`${fileName} needs types of ${name}, by one of${from.slice(0, 10).join("")}`)
      onlyNode([name])
    }
  }
}

/** Builds `dist` of the package, from the compiler's output of the packages. */
export const buildBundled = async (folder: string): Promise<void> => {
  await rm(join(folder, "dist"), { recursive: true, force: true })
  const modules = publicModules(folder)
  const at = (extension: string) =>
    Object.fromEntries(modules.map(({ path }) => [path, join(folder, ".tsbuild", `${path}${extension}`)]))
  const parts = Object.entries(fileModules).map(([name, path]) => [name, join(folder, "../..", path)])
  const code = await bundleCode(folder, { ...at(".js"), ...programs, ...Object.fromEntries(parts) })
  await compileAtLoad(join(folder, "dist"))
  await bundleTypes(folder, at(".d.ts"))
  await writeNotices(folder, code)
  await cp(join(folder, "../../LICENSE"), join(folder, "LICENSE"))
  const files = await readdir(join(folder, "dist"), { recursive: true })
  console.log(`packages/${basename(folder)}/dist  ${modules.length} entries in ${files.length} files`)
}

if (import.meta.main) await buildBundled(join(dirname(import.meta.dirname), "packages/skein"))
