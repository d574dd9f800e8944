/**
 * `skein build`: bundles a server, and everything that it imports, into one file that starts fast.
 *
 * The file contains the bundle in a comment, after a line that enables Node's compile cache and compiles the bundle: the
 * cache has effect on the code that is compiled after it was enabled. A bundle in a file of its own starts as fast,
 * within the precision of the measurement. The lines of the bundle are those of the file, also in stack traces.
 *
 * The file is a program of a shell too, so that it can be the `bin` of a package: npm links to it, and npx starts it.
 */
import { withoutColors } from "@skein/protocol/Text"
import { existsSync, readFileSync } from "node:fs"
import { chmod, mkdir, writeFile } from "node:fs/promises"
import { isBuiltin } from "node:module"
import { basename, dirname, extname, join, relative, resolve } from "node:path"
import { pathToFileURL } from "node:url"
import type * as Rolldown from "rolldown"
import { failed } from "../base/process.ts"
import { listExports, noDefinition } from "./folderServer.ts"
import type { DescribedServer, DescribeLine } from "./nodeDescribe.ts"
import { type ModuleFolder, readFolder } from "./nodeFolder.ts"
import { findDependency, findModule, findRolldown, installation, unusableFile } from "./nodeLoadModule.ts"

/** The result of a build. */
export interface Built {
  readonly file: string
  readonly bytes: number
  /** Packages that stay outside of the file, and have to be installed beside it. */
  readonly external: ReadonlyArray<{ readonly name: string; readonly reason: "native code" | "--external" }>
  /** Modules that dependencies import and that are not installed: optional ones, usually. */
  readonly missing: ReadonlyArray<{ readonly name: string; readonly importedBy: string }>
  /** The bundle of `--mcpb`. */
  readonly bundle?: { readonly file: string; readonly bytes: number }
}

const start = "skein:start"
const project = "skein:module"
const ofFolder = "skein:folder"

const transportOf = ({ http }: BuildLine): string => `@skein/server/${http ? "NodeHttp" : "Stdio"}`

/** Starts an exported server. An instance of `AsyncServer` has the method. */
const startOf = (line: BuildLine, exportName: string): string => `
import { runMain } from ${JSON.stringify(transportOf(line))}
import { ${exportName === "default" ? "default" : JSON.stringify(exportName)} as exported } from "${project}"
runMain(typeof exported?.toLayer === "function" ? exported.toLayer() : exported)
`

/** Starts an exported server of the package `skein`. */
const startOfBundled = ({ http }: BuildLine, exportName: string): string => `
import { ${exportName === "default" ? "default" : JSON.stringify(exportName)} as exported } from "${project}"
exported.${http ? "runHttp" : "runStdio"}()
`

/** Starts a module that starts its server. */
const programOf = `import "${project}"\n`

/** Starts the server of the modules of a folder. */
const startOfFolder = (line: BuildLine, { modules, name, version }: ModuleFolder): string => `
import { runMain } from ${JSON.stringify(transportOf(line))}
import * as McpServer from "@skein/server/McpServer"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { folderServer } from "${ofFolder}"
${modules.map((_, at) => `import * as module${at} from "${project}/${at}"`).join("\n")}
runMain(folderServer({ Effect, Layer, McpServer }, ${JSON.stringify({ name, version })}, [
  ${modules.map(({ path }, at) => `[${JSON.stringify(path)}, module${at}]`).join(",\n  ")}
]))
`

/** Starts the server of the modules of a folder whose definitions the package `skein` makes. */
const startOfBundledFolder = (line: BuildLine, { modules, name, version }: ModuleFolder): string => `
import { AsyncServer } from "skein"
import { folderServer, partsKey } from "${ofFolder}"
${modules.map((_, at) => `import * as module${at} from "${project}/${at}"`).join("\n")}
const server = new AsyncServer(${JSON.stringify({ name, version })})
const start = async (parts) => {
  const { runMain } = await parts.loadTransport(${line.http})
  runMain(folderServer(parts, ${JSON.stringify({ name, version })}, [
    ${modules.map(({ path }, at) => `[${JSON.stringify(path)}, module${at}]`).join(",\n    ")}
  ]))
}
server[partsKey]().then(start)
`

/** A parsed command line of `build`. */
export interface BuildLine {
  readonly module: string
  readonly exportName: string | undefined
  readonly http: boolean
  /** The file to write. */
  readonly out: string | undefined
  readonly minify: boolean
  readonly sourcemap: boolean
  /** Packages that stay outside of the file. */
  readonly external: ReadonlyArray<string>
  readonly json: boolean
  /** Whether a bundle is written, too: a description of the server, for which it is built once. */
  readonly mcpb?: boolean
  /** Variables for the server that is described, and its file with variables. */
  readonly env?: DescribeLine["env"]
  readonly dotenv?: string | undefined
}

/**
 * The export to serve, without running the module; undefined for a module without exports, which is a program that
 * starts the server.
 */
const selectExport = (
  names: ReadonlyArray<string>,
  { exportName, http, module }: Pick<BuildLine, "exportName" | "http" | "module">
): string | undefined => {
  const list = listExports(names)
  if (exportName !== undefined) {
    if (names.includes(exportName)) return exportName
    throw unusableFile(`The module ${module} has no export ${exportName}: ${list}`)
  }
  if (names.includes("default")) return "default"
  if (names.length > 1) throw unusableFile(`Select the server of ${module} with --export: ${list}`)
  if (names.length === 0 && http) {
    throw unusableFile(`The module ${module} has no exports, so it starts the server itself, and --http has no effect`)
  }
  return names[0]
}

const nativeHelpers = new Set([
  "bindings",
  "node-gyp-build",
  "node-gyp-build-optional-packages",
  "prebuild-install",
  "node-pre-gyp"
])

interface Manifest {
  readonly name?: string
  readonly gypfile?: unknown
  readonly binary?: unknown
  readonly napi?: unknown
  readonly dependencies?: Readonly<Record<string, string>>
}

/** Whether the package in a folder loads native code, which a bundle cannot contain. */
const isNative = (folder: string): boolean => {
  if (existsSync(join(folder, "binding.gyp"))) return true
  try {
    const { binary, dependencies = {}, gypfile, napi } = JSON.parse(
      readFileSync(join(folder, "package.json"), "utf8")
    ) as Manifest
    return gypfile === true || binary !== undefined || napi !== undefined ||
      Object.keys(dependencies).some((name) => nativeHelpers.has(name.replace(/^@mapbox\//, "")))
  } catch {
    return false
  }
}

/** The folder of the package of a file in `node_modules`. */
const packageFolder = (file: string): string | undefined =>
  /^.*[/\\]node_modules[/\\](?:@[^/\\]+[/\\])?[^/\\]+(?=[/\\])/.exec(file)?.[0]

const packageName = (specifier: string): string => /^(?:@[^/]+\/)?[^/]+/.exec(specifier)![0]

const isBare = (specifier: string): boolean => /^[\w@]/.test(specifier) && !/^[a-z]:[/\\]/i.test(specifier)

/** The module that makes the server of a folder, with the extension of this file: a program from source has no compiled files. */
const folderServerFile = (): string => join(import.meta.dirname, `folderServer${extname(import.meta.filename)}`)

/** Resolves the modules of a server, and collects those that stay outside of the bundle. */
const resolving = (
  files: ReadonlyArray<string>,
  line: BuildLine,
  startCode: string,
  external: Map<string, "native code" | "--external">,
  missing: Map<string, string>
): Rolldown.Plugin => {
  const natives = new Map<string, boolean>()
  const [first] = files
  const modules = new Map(files.map((file, at) => [`${project}/${at}`, file]))
  return {
    name: "skein-build",
    async resolveId(source, importer, { kind }) {
      if (source === start) return start
      if (source === project) return first
      if (source === ofFolder) return folderServerFile()
      const module = modules.get(source)
      if (module !== undefined) return module
      if (isBuiltin(source)) return null
      if (source.endsWith(".node")) {
        external.set(source, "native code")
        return { id: source, external: true }
      }
      if (!isBare(source)) return null
      const name = packageName(source)
      if (line.external.includes(name)) {
        external.set(name, "--external")
        return { id: source, external: true }
      }
      // The start of the server imports the packages of the project, and the effect of its server.
      const from = importer !== start
        ? importer
        : source.startsWith("effect/")
        ? findDependency(transportOf(line), first!)
        : first
      const resolved = await this.resolve(source, from, { kind, skipSelf: true })
      if (resolved === null) {
        if (from === undefined || packageFolder(from) === undefined) return null
        missing.set(source, basename(packageFolder(from)!))
        return { id: source, external: true }
      }
      const folder = resolved.external === true ? undefined : packageFolder(resolved.id)
      if (folder === undefined) return resolved
      if (!natives.has(folder)) natives.set(folder, isNative(folder))
      if (natives.get(folder) !== true) return resolved
      external.set(name, "native code")
      return { id: source, external: true }
    },
    load: (id) => id === start ? { code: startCode, moduleType: "js" } : null
  }
}

const loadRolldown = async (path: string): Promise<typeof Rolldown> => {
  const file = findRolldown("rolldown", path)
  if (file !== undefined) return await import(pathToFileURL(file).href) as typeof Rolldown
  throw unusableFile(
    "skein build needs rolldown, which is not installed in the project: npm install --save-dev rolldown"
  )
}

/** The conditions of this process (`node --conditions`), by which the project resolves packages when it runs. */
const conditions = (): ReadonlyArray<string> => {
  const words = [...(process.env["NODE_OPTIONS"] ?? "").split(/\s+/), ...process.execArgv]
  return words.flatMap((word, at) => {
    const [, value] = /^(?:--conditions|-C)(?:=(.+))?$/.exec(word) ?? []
    return value ?? (/^(--conditions|-C)$/.test(word) ? words[at + 1] ?? [] : [])
  })
}

/** The entries of `skein` that make definitions or servers. A server of `@skein/server` may use others, such as the client. */
const definedBySkein = /^skein(?:\/tasks|\/openapi|\/gateway)?$/

/** The modules of a project, as they are without running them. */
interface Inspected {
  /** The names of the exports of each module, and its imports of packages. */
  readonly exports: ReadonlyArray<ReadonlyArray<string>>
  readonly imports: ReadonlyArray<ReadonlyArray<string>>
  /** Whether the project imports definitions or a server of the package `skein`. */
  readonly hasSkein: boolean
}

const inspect = async ({ rolldown }: typeof Rolldown, files: ReadonlyArray<string>): Promise<Inspected> => {
  const bundle = await rolldown({
    input: Object.fromEntries(files.map((file, at) => [String(at), file])),
    platform: "node",
    preserveEntrySignatures: "strict",
    resolve: { conditionNames: [...conditions()] },
    logLevel: "silent",
    // The modules of the project may be re-exported by `export *`; other ones are not loaded.
    external: (id, importer) => importer !== undefined && isBare(id)
  })
  try {
    const { output } = await bundle.generate({ format: "esm" })
    const chunks = output.flatMap((each) => each.type === "chunk" ? [each] : [])
    const entries = files.map((_, at) => chunks.find(({ isEntry, name }) => isEntry && name === String(at)))
    return {
      exports: entries.map((entry) => entry?.exports ?? []),
      imports: entries.map((entry) => entry?.imports.filter(isBare) ?? []),
      hasSkein: chunks.some(({ imports }) => imports.some((specifier) => definedBySkein.test(specifier)))
    }
  } finally {
    await bundle.close()
  }
}

/** The end of a comment, which the bundle may contain, in a form that it does not contain. */
const escapeOf = (code: string): string => {
  let marks = "~"
  while (code.includes(`*${marks}/`)) marks += "~"
  return `*${marks}/`
}

/**
 * The text of the file. Hosts often kill a server, and Node writes its compile cache when a process exits: the start
 * writes it after some seconds too. Node 20 has no such cache. With a source map, stack traces have the lines of the
 * sources without an option of Node.
 */
const fileOf = (code: string, mapName: string | undefined): string => {
  const escape = escapeOf(code)
  const mapped = mapName === undefined ? "" : "process.setSourceMapsEnabled(true);"
  const head = "#!/usr/bin/env node\n\"use strict\";{const M=require(\"node:module\");M.enableCompileCache?.();" +
    mapped +
    "const s=require(\"node:fs\").readFileSync(__filename,\"utf8\"),m=new M(__filename,module.parent);" +
    "m.filename=__filename;m.paths=module.paths;" +
    `m._compile("\\n"+s.slice(s.indexOf("/*\\n")+2,-3).replaceAll(${JSON.stringify(escape)},"*"+"/"),__filename);` +
    "M.flushCompileCache&&setTimeout(M.flushCompileCache,3e3).unref()}"
  const comment = mapName === undefined ? "" : `\n//# sourceMappingURL=${mapName}`
  return `${head}/*\n${(code.trimEnd() + comment).replaceAll("*/", escape)}\n*/`
}

const reasonOf = (error: unknown): string =>
  withoutColors(error instanceof Error ? error.message : String(error)).trim()

const fail = (line: BuildLine, error: unknown): never => {
  // The first line of rolldown recommends an option that this command does not have. The lines after it have the place.
  const [first, ...rest] = reasonOf(error).split("\n").filter((text) => !/^(?:Build failed with .*)?$/.test(text))
  const reason = /top-level await/i.test(first ?? "")
    ? "a module awaits at its top level, and the file is CommonJS, which Node loads faster. Move the await into a layer or a function"
    : first
  throw unusableFile(`${line.module} cannot be bundled: ${[reason, ...rest].join("\n")}`)
}

const writeFiles = async (file: string, text: string, map: string | undefined): Promise<void> => {
  try {
    await mkdir(dirname(resolve(file)), { recursive: true })
    await writeFile(file, text)
    await chmod(file, 0o755)
    if (map !== undefined) await writeFile(`${file}.map`, map)
  } catch (error) {
    throw failed(3, `The file ${file} cannot be written: ${reasonOf(error)}`)
  }
}

/** The file of a module or a folder by default. */
export const outputOf = (module: string): string => {
  const name = basename(resolve(module))
  return join("dist", `${basename(name, extname(name))}.cjs`)
}

/** Fails for a folder with definitions of both packages. A module that imports another one of them fails when it starts. */
const checkPackages = ({ modules }: ModuleFolder, { imports }: Inspected): void => {
  const importing = (pattern: RegExp): string | undefined =>
    modules.find((_, at) => imports[at]!.some((specifier) => pattern.test(specifier)))?.path
  const [ofSkein, ofServer] = [importing(definedBySkein), importing(/^@skein\/server\//)]
  if (ofSkein === undefined || ofServer === undefined) return
  throw unusableFile(
    `The module ${ofSkein} imports skein, and ${ofServer} @skein/server: in a folder, use one of these packages`
  )
}

/** The code that starts the server, without running a module. */
const startCodeOf = async (
  loaded: typeof Rolldown,
  files: ReadonlyArray<string>,
  folder: ModuleFolder | undefined,
  line: BuildLine
): Promise<string> => {
  const inspected = await inspect(loaded, files).catch((error: unknown) => fail(line, error))
  const { exports: names, hasSkein } = inspected
  if (folder !== undefined) checkPackages(folder, inspected)
  const empty = folder?.modules.find((_, at) => names[at]!.length === 0)
  if (empty !== undefined) throw unusableFile(noDefinition(empty.path, []))
  const exportName = folder === undefined ? selectExport(names[0]!, line) : undefined
  if (folder === undefined && exportName === undefined) return programOf
  const hasServer = findDependency("@skein/server/Stdio", files[0]!) !== undefined
  if (hasSkein || (!hasServer && findDependency("skein", files[0]!) !== undefined)) {
    return folder === undefined ? startOfBundled(line, exportName!) : startOfBundledFolder(line, folder)
  }
  if (!hasServer) {
    throw unusableFile(`@skein/server is not installed in the project of ${files[0]}: ${installation}`)
  }
  return folder === undefined ? startOf(line, exportName!) : startOfFolder(line, folder)
}

const describe = async ({ dotenv, env = {}, exportName, module }: BuildLine): Promise<DescribedServer> =>
  (await import("./nodeDescribe.ts")).describeServer({ module, exportName, dotenv, env })

/** Writes the bundle beside the file. It must contain everything: hosts install no packages. */
const bundled = async (
  file: string,
  described: DescribedServer,
  text: string,
  external: Iterable<string>
): Promise<NonNullable<Built["bundle"]>> => {
  const outside = [...external]
  if (outside.length > 0) {
    throw unusableFile(`A bundle cannot be made, because these packages are not in the file: ${outside.join(", ")}`)
  }
  const to = file.replace(/\.c?js$/, ".mcpb")
  const { writeBundle } = await import("./nodeMcpb.ts")
  return { file: relative(process.cwd(), resolve(to)), bytes: await writeBundle(to, described, Buffer.from(text)) }
}

/** Bundles a server, and writes the file. */
export const buildServer = async (line: BuildLine): Promise<Built> => {
  const path = findModule(line.module)
  const file = line.out ?? outputOf(line.module)
  if (!/\.c?js$/.test(file)) throw unusableFile(`The file of --out must end with .cjs: ${file}`)
  const folder = readFolder(path, line)
  const files = folder?.modules.map(({ file }) => file) ?? [path]
  if (files.includes(resolve(file))) throw unusableFile(`The file of --out is a module of the server: ${file}`)
  const described = line.mcpb === true ? await describe(line) : undefined
  const loaded = await loadRolldown(files[0]!)
  const startCode = await startCodeOf(loaded, files, folder, line)
  const external = new Map<string, "native code" | "--external">()
  const missing = new Map<string, string>()
  const problems: Array<string> = []
  const bundle = await loaded.rolldown({
    input: start,
    platform: "node",
    // Packages have modules for bundlers under the condition `module`: `skein`, whose entries for Node load another file.
    resolve: { conditionNames: [...conditions(), "module"] },
    plugins: [resolving(files, line, startCode, external, missing)],
    onLog: (_, log) => {
      if (log.code === "UNRESOLVED_IMPORT") problems.push(reasonOf(log.message))
    }
  })
  try {
    const name = basename(file)
    const { output: [entry] } = await bundle.generate({
      file: resolve(file),
      format: "cjs",
      codeSplitting: false,
      minify: line.minify,
      sourcemap: line.sourcemap ? "hidden" : false
    }).catch((error: unknown) => fail(line, error))
    if (problems.length > 0) fail(line, problems.join("\n"))
    const text = fileOf(entry.code, line.sourcemap ? `${name}.map` : undefined)
    // The first two lines of the file are not of the bundle.
    const map = entry.map == null ? undefined : JSON.stringify({ ...entry.map, mappings: `;;${entry.map.mappings}` })
    await writeFiles(file, text, map)
    const mcpb = described && await bundled(file, described, text, external.keys())
    return {
      file: relative(process.cwd(), resolve(file)),
      bytes: Buffer.byteLength(text),
      external: Array.from(external, ([name, reason]) => ({ name, reason })),
      missing: Array.from(missing, ([name, importedBy]) => ({ name, importedBy })),
      ...mcpb === undefined ? {} : { bundle: mcpb }
    }
  } finally {
    await bundle.close()
  }
}

/** The report for a person: what the file needs beside it. */
export const notesOf = ({ external, missing }: Built): ReadonlyArray<string> => [
  ...external.map(({ name, reason }) =>
    reason === "native code"
      ? `${name} has native code, so it is not in the file: install it beside the file`
      : `${name} is not in the file (--external): install it beside the file`
  ),
  ...missing.map(({ importedBy, name }) =>
    `${name} is not installed, and ${importedBy} imports it: the import fails when it is used`
  )
]
