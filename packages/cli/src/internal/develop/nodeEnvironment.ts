/**
 * The variables that the files of a project read from `process.env` while their server is built, for its description. Files
 * of packages are not part of the project: what they read is up to them.
 */
import { syncBuiltinESMExports } from "node:module"
import { sep } from "node:path"
import { fileURLToPath } from "node:url"

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

/** Records the variables that the files of a folder read, until `restore`. */
export const recordEnvironment = (folder: string) => {
  const read = new Set<string>()
  const { env } = process
  const isOfProject = (file: string): boolean => {
    const path = file.startsWith("file:") ? fileURLToPath(file) : file
    return path.startsWith(folder + sep) && !path.includes(`${sep}node_modules${sep}`)
  }
  const record = (name: string | symbol, reader: Function): void => {
    if (typeof name !== "string" || read.has(name) || ofSystem.test(name)) return
    const file = callerOf(reader)
    if (file !== undefined && isOfProject(file)) read.add(name)
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
  return { read, restore: () => replace(env) }
}
