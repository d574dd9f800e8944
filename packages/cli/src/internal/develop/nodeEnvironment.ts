/**
 * The variables of the files of a project, for the description of their server: those that they read from `process.env` while
 * the server is built, and those that their text reads, which only a handler may do. Files of packages are not part of the
 * project: what they read is up to them.
 */
import { readFileSync } from "node:fs"
import { syncBuiltinESMExports } from "node:module"
import { projectFolder } from "../base/nodeProject.ts"
import { projectFile, recordFiles } from "./nodeProjectFiles.ts"

/** Variables of the system and of Node, which a person is not asked for. */
const ofSystem =
  /^(NODE_\w*|npm_\w*|PATH|HOME|USER|USERPROFILE|SHELL|TERM|TMPDIR|TEMP|TZ|LANG|CI|DEBUG|NO_COLOR|FORCE_COLOR)$/i

/** Returns the file of the code that called a function. */
const callerOf = (called: Function): string | undefined => {
  const { prepareStackTrace, stackTraceLimit } = Error
  const trace: { stack?: ReadonlyArray<NodeJS.CallSite> | string } = {}
  try {
    Error.stackTraceLimit = 1
    Error.prepareStackTrace = (_, sites) => sites
    Error.captureStackTrace(trace, called)
    const [site] = trace.stack ?? []
    return (typeof site === "object" ? site.getFileName() : undefined) ?? undefined
  } finally {
    Error.prepareStackTrace = prepareStackTrace
    Error.stackTraceLimit = stackTraceLimit
  }
}

/** The names in the text of a file that are read from `process.env`, without those in lines that are comments. */
const namesIn = (text: string): ReadonlyArray<string> => {
  const code = text.replaceAll(/^[ \t]*(?:\/[/*]|\*).*$/gm, "")
  const env = /\benv\b[^;\n]*\bfrom\s*["'](?:node:)?process["']/.test(code) ? "(?:process\\.)?env" : "process\\.env"
  const members = new RegExp(
    `(?<![\\w$.])${env}!?(?:\\??\\.(\\w+)(?!\\w)|(?:\\?\\.)?\\[["']([^"']+)["']\\])(?!\\s*=[^=>])`,
    "g"
  )
  const destructured = new RegExp(`\\{([^{}]*)\\}\\s*=\\s*${env}(?![\\w$.[])`, "g")
  return [
    ...Array.from(code.matchAll(members), ([, dotted, quoted]) => dotted ?? quoted!),
    ...Array.from(code.matchAll(destructured), ([, list]) => list!.split(",")).flat()
      .map((item) => /^\s*["']?(\w+)/.exec(item)?.[1] ?? "")
  ].filter((name) => name !== "" && !ofSystem.test(name))
}

/** Records the variables that the files in the project of a module or of a folder of modules read, until `restore`. */
export const recordEnvironment = (path: string) => {
  const folder = projectFolder(path)
  const read = new Set<string>()
  const { files, stop } = recordFiles(path)
  const { env } = process
  const record = (name: string | symbol, reader: Function): void => {
    if (typeof name !== "string" || read.has(name) || ofSystem.test(name)) return
    const file = callerOf(reader)
    if (file !== undefined && projectFile(folder, file) !== undefined) read.add(name)
  }
  const get = (target: NodeJS.ProcessEnv, name: string | symbol): unknown => {
    record(name, get)
    return Reflect.get(target, name)
  }
  const has = (target: NodeJS.ProcessEnv, name: string | symbol): boolean => {
    record(name, has)
    return Reflect.has(target, name)
  }
  const replace = (value: NodeJS.ProcessEnv): void => {
    process.env = value
    // For `import { env } from "node:process"`.
    syncBuiltinESMExports()
  }
  replace(new Proxy(env, { get, has }))
  return {
    /** The variables that were read. */
    read,
    /** The variables that the loaded files read in their text. */
    readByText: () => files().flatMap((file) => namesIn(readFileSync(file, "utf8"))),
    restore: () => {
      stop()
      replace(env)
    }
  }
}
