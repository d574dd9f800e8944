/**
 * Loads `node:sqlite`. Node warns once per process that this module is experimental, on stderr, where users of a
 * program cannot do anything about it. Only that warning is left out; other warnings are printed as usual.
 */
import type * as Sqlite from "node:sqlite"

type EmitWarning = (warning: string | Error, ...rest: ReadonlyArray<unknown>) => void

/** Whether it is the warning about SQLite. Node emits it with a text and the type `ExperimentalWarning`. */
const isAboutSqlite = (warning: string | Error, type: unknown): boolean =>
  type === "ExperimentalWarning" && typeof warning === "string" && warning.startsWith("SQLite ")

/**
 * Returns the module. Throws if this Node has none: before 22.13, or in a build without SQLite.
 *
 * Loading is synchronous, so that no warning of other code can be emitted while the function is replaced. An `import`
 * statement would load the module before any code of this package runs.
 */
export const loadNodeSqlite = (): typeof Sqlite => {
  const { emitWarning } = process
  const filtered: EmitWarning = (warning, ...rest) => {
    if (!isAboutSqlite(warning, rest[0])) (emitWarning as EmitWarning).call(process, warning, ...rest)
  }
  process.emitWarning = filtered as typeof emitWarning
  try {
    const loaded = process.getBuiltinModule("node:sqlite") as typeof Sqlite | undefined
    if (loaded !== undefined) return loaded
  } finally {
    process.emitWarning = emitWarning
  }
  throw new Error(`Node ${process.version} has no node:sqlite; use Node 22.19 or newer`)
}
