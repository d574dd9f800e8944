/**
 * Loads a module of the user. Node runs TypeScript by removing the types. TypeScript that Node cannot run that way
 * (`enum`, parameter properties, decorators, JSX, imports of types without `type`, imports without an extension) is
 * transformed by rolldown, if the project has it.
 */
import { withoutColors } from "@skein/protocol/Text"
import { existsSync, readFileSync, statSync } from "node:fs"
import * as Module from "node:module"
import { dirname, extname, join, resolve } from "node:path"
import { fileURLToPath, pathToFileURL } from "node:url"
import type * as RolldownUtils from "rolldown/utils"
import { projectFolder } from "../base/nodeProject.ts"
import { type CommandFailed, failed } from "../base/process.ts"

/** The command cannot use a file of the user. */
export const unusableFile = (report: string): CommandFailed => failed(2, report)

/** How the packages of a server are installed, for reports. */
export const installation = "npm install skein, or npm install @skein/server effect"

/** The extensions of modules, in the order in which an import without an extension is completed. */
const extensions = [".ts", ".mts", ".cts", ".tsx", ".js", ".mjs", ".cjs", ".jsx"]

/** The absolute path of a module, or of a folder of modules. Fails if there is neither. */
export const findModule = (path: string): string => {
  const absolute = resolve(path)
  if (!existsSync(absolute)) throw unusableFile(`The module ${path} does not exist`)
  const stats = statSync(absolute)
  if (stats.isFile() || stats.isDirectory()) return absolute
  throw unusableFile(`The module ${path} is neither a file nor a folder`)
}

/**
 * The file of a dependency as the project of `from` resolves it, or undefined. `from` is a file of the project.
 */
export const findDependency = (specifier: string, from: string): string | undefined => {
  try {
    return Module.createRequire(from).resolve(specifier)
  } catch {
    return undefined
  }
}

/** The file of a module of rolldown: the copy of the project, or else that of this package. */
export const findRolldown = (specifier: string, from: string): string | undefined =>
  findDependency(specifier, from) ?? findDependency(specifier, fileURLToPath(import.meta.url))

const mark = "?transformed"

const isTypeScript = (path: string): boolean => /\.[cm]?tsx?$|\.jsx$/.test(path)

/** Resolves a relative import that has no extension, has that of the output, or names a folder. */
const complete = (specifier: string, parent: string): string | undefined => {
  const path = resolve(dirname(fileURLToPath(parent)), specifier)
  const base = path.replace(/\.([cm]?)jsx?$/, "")
  const candidates = [
    ...base === path ? [] : extensions.slice(0, 4).map((extension) => base + extension),
    ...extensions.map((extension) => path + extension),
    ...extensions.map((extension) => join(path, `index${extension}`))
  ]
  return candidates.find((candidate) => existsSync(candidate) && statSync(candidate).isFile())
}

type TransformSync = typeof RolldownUtils.transformSync

/**
 * Transforms the TypeScript of the project from now on. The URL of each transformed module has a query: Node stores
 * the failure of a module under its URL.
 */
const transformModules = (transformSync: TransformSync, registerHooks: typeof Module.registerHooks): void => {
  const isOfProject = (url: string): boolean => url.startsWith("file:") && !url.includes("/node_modules/")
  registerHooks({
    resolve: (specifier, context, next) => {
      const { parentURL } = context
      const isFromProject = parentURL !== undefined && parentURL.includes(mark)
      try {
        const resolved = next(specifier, context)
        const { url } = resolved
        return isFromProject && isOfProject(url) && isTypeScript(new URL(url).pathname) && !url.includes("?")
          ? { ...resolved, url: url + mark }
          : resolved
      } catch (error) {
        const path = isFromProject && specifier.startsWith(".") ? complete(specifier, parentURL) : undefined
        if (path === undefined) throw error
        return { url: `${pathToFileURL(path).href}${isTypeScript(path) ? mark : ""}`, shortCircuit: true }
      }
    },
    load: (url, context, next) => {
      if (!url.endsWith(mark)) return next(url, context)
      const path = fileURLToPath(url)
      const { code, errors } = transformSync(path, readFileSync(path, "utf8"), { sourcemap: false })
      const [error] = errors
      if (error !== undefined) throw new SyntaxError(`${path}: ${error.message}`)
      return { format: path.endsWith(".cts") ? "commonjs" : "module", source: code, shortCircuit: true }
    }
  })
}

const codes = new Set([
  "ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX",
  "ERR_INVALID_TYPESCRIPT_SYNTAX",
  "ERR_UNKNOWN_FILE_EXTENSION",
  "ERR_UNSUPPORTED_DIR_IMPORT",
  "ERR_MODULE_NOT_FOUND"
])

/** Whether a transformation may help. */
const isOfSyntax = (paths: ReadonlyArray<string>, error: unknown): boolean =>
  paths.some(isTypeScript) && error instanceof Error &&
  (error.name === "SyntaxError" || "code" in error && codes.has(String(error.code)))

/** The stack of an error, without colors and without the frames of Node and of this program. */
const reasonOf = (error: unknown): string => {
  if (!(error instanceof Error)) return String(error)
  const isForeign = (line: string): boolean =>
    /^\s+at (?:.* \()?node:|[/\\](?:develop|code)[/\\]node(?:LoadModule|Run)[-.]/.test(line)
  return withoutColors(error.stack ?? error.message).split("\n").filter((line) => !isForeign(line)).join("\n")
}

/** The errors of Node about a module in a CommonJS package: `import`, `export`, `import.meta` and `await` at its top. */
const moduleSyntax =
  /^(?:Cannot use import statement outside a module|Unexpected token 'export'|Cannot use 'import\.meta' outside|await is only valid in async functions and the top level)/

/**
 * The report about a module that Node has read as CommonJS, because of the `package.json` beside it. Undefined for other
 * errors, for the CommonJS extensions, and for an installed package.
 */
const wrongTypeOf = (path: string, error: unknown): CommandFailed | undefined => {
  if (!(error instanceof Error) || !moduleSyntax.test(error.message)) return undefined
  // The module itself, or one that it imports.
  const file = /^(\S.*):\d+\r?\n/.exec(error.stack ?? "")?.[1] ?? path
  const manifest = join(projectFolder(file), "package.json")
  if (!existsSync(manifest) || /\.c[jt]s$/.test(file) || /[/\\]node_modules[/\\]/.test(file)) return undefined
  return unusableFile(
    `The module ${file} has import or export, and its package is not an ES module. Set "type": "module" in ${manifest}: ` +
      "npm pkg set type=module"
  )
}

/** The exports of a module. */
export type Exports = Readonly<Record<string, unknown>>

const importModules = async (urls: ReadonlyArray<string>): Promise<ReadonlyArray<Exports>> => {
  if (urls.length > 1) {
    // Node evaluates none of the modules before all of them are linked: none runs twice if they are transformed then.
    const code = urls.map((url) => `import ${JSON.stringify(url)}`).join("\n")
    await import(`data:text/javascript,${encodeURIComponent(code)}`)
  }
  const exports: Array<Exports> = []
  for (const url of urls) exports.push(await import(url) as Exports)
  return exports
}

/** The report about the first module that cannot be imported. The failures of the others are those of their imports. */
const failureOf = async (
  paths: ReadonlyArray<string>,
  urls: ReadonlyArray<string>,
  thrown: unknown,
  advice = ""
): Promise<CommandFailed> => {
  const wrongType = wrongTypeOf(paths[0]!, thrown)
  if (wrongType !== undefined) return wrongType
  for (const [at, url] of paths.length > 1 ? urls.entries() : []) {
    try {
      await import(url)
    } catch (error) {
      return unusableFile(`The module ${paths[at]} cannot be loaded: ${reasonOf(error)}${advice}`)
    }
  }
  return unusableFile(`The module ${paths[0]} cannot be loaded: ${reasonOf(thrown)}${advice}`)
}

/**
 * Imports the modules at absolute paths. Fails with the stack of the error that one of them throws, or of the reason why
 * it cannot be loaded.
 */
export const loadModules = async (paths: ReadonlyArray<string>): Promise<ReadonlyArray<Exports>> => {
  const other = paths.find((path) => !extensions.includes(extname(path)))
  if (other !== undefined) {
    throw unusableFile(
      `The module ${other} is not JavaScript or TypeScript: its extension must be one of ${extensions.join(", ")}`
    )
  }
  const urls = paths.map((path) => pathToFileURL(path).href)
  try {
    return await importModules(urls)
  } catch (error) {
    // Bun has no hooks, and transforms TypeScript itself.
    const { registerHooks } = Module as Partial<typeof Module>
    if (registerHooks === undefined || !isOfSyntax(paths, error)) throw await failureOf(paths, urls, error)
    const rolldown = findRolldown("rolldown/utils", paths[0]!)
    if (rolldown === undefined) {
      throw await failureOf(
        paths,
        urls,
        error,
        "\nNode runs TypeScript by removing the types. For other TypeScript, such as enum and decorators, install " +
          "rolldown in the project: npm install --save-dev rolldown"
      )
    }
    const { transformSync } = await import(pathToFileURL(rolldown).href) as { readonly transformSync: TransformSync }
    transformModules(transformSync, registerHooks)
    const transformed = urls.map((url, at) => isTypeScript(paths[at]!) ? url + mark : url)
    try {
      return await importModules(transformed)
    } catch (error) {
      throw await failureOf(paths, transformed, error)
    }
  }
}
