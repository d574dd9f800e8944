/**
 * A lock on a file, among processes and threads: an exclusive transaction of SQLite. The operating system releases it
 * when the process ends, however it ends, so there is neither a lease nor a lock of a dead process to break.
 *
 * The file is never opened but through SQLite: on POSIX, closing any descriptor of a file releases all locks that the
 * process has on it. So SQLite also creates it; `writeFile` with `wx` would close a descriptor while another thread may
 * have the lock already.
 */
import * as Effect from "effect/Effect"
import { chmodSync, lstatSync, type Stats, unlinkSync } from "node:fs"
import type * as Sqlite from "node:sqlite"
import type { TokenStoreError } from "../stores/TokenStoreError.ts"
import type { SharedLock } from "../../shared/localLocks.ts"
import { invalidEntry, unavailable } from "../stores/values.ts"

type EmitWarning = (warning: string | Error, ...rest: ReadonlyArray<unknown>) => void

const isAboutSqlite = (warning: string | Error, type: unknown): boolean =>
  type === "ExperimentalWarning" && typeof warning === "string" && warning.startsWith("SQLite ")

/**
 * Returns `node:sqlite`, without the warning that it is experimental, which would be printed in the terminal of the user.
 * Other warnings are printed as usual: loading is synchronous. `@skein/sql` does the same, but with it a command that
 * signs in would load all of Effect's SQL modules, which takes more than 100 ms.
 */
const loadNodeSqlite = (): typeof Sqlite => {
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

// Result codes of SQLite (https://sqlite.org/rescode.html).
const busy = 5
const notADatabase = 26

const codeOf = (cause: unknown): number | undefined =>
  cause instanceof Error && "errcode" in cause && typeof cause.errcode === "number" ? cause.errcode & 0xff : undefined

const messageOf = (cause: unknown): string => cause instanceof Error ? cause.message : String(cause)

const ifExists = (path: string) => lstatSync(path, { throwIfNoEntry: false })

/** An open lock file, and which file it is. */
interface Opened {
  readonly database: Sqlite.DatabaseSync
  readonly file: Stats
}

const isSame = (a: Stats, b: Stats | undefined): boolean => a.ino === b?.ino && a.dev === b.dev

/**
 * Opens the file, and creates it if it does not exist. Returns `undefined` if it was created or replaced at that moment:
 * then it is not known which file SQLite has opened.
 */
const open = (path: string): Opened | undefined => {
  const file = ifExists(path)
  if (file !== undefined && !file.isFile()) {
    throw invalidEntry(`the lock "${path}" of the token store is not a file; delete it`)
  }
  const database = new (loadNodeSqlite().DatabaseSync)(path, { timeout: 0 })
  try {
    const now = ifExists(path)
    if (file !== undefined && isSame(file, now)) return { database, file }
    if (process.platform !== "win32" && now !== undefined) chmodSync(path, 0o600)
  } catch (cause) {
    database.close()
    throw cause
  }
  database.close()
  return undefined
}

const lockError = (path: string, cause: unknown): TokenStoreError => {
  if (cause instanceof Error && "_tag" in cause) return cause as TokenStoreError
  return codeOf(cause) === notADatabase
    ? invalidEntry(
      `"${path}" is not a lock of the token store; end the programs that use the store, and delete the file`
    )
    : unavailable(`cannot lock "${path}" of the token store: ${messageOf(cause)}`, cause)
}

/** A random time, so that processes that failed at the same moment do not retry at the same moment. */
const pause: Effect.Effect<void> = /* @__PURE__ */ Effect.suspend(() => Effect.sleep(15 + Math.random() * 30))

/** Takes the lock if it is free. Nothing blocks the process. */
const tryLock = (database: Sqlite.DatabaseSync): boolean => {
  try {
    // A journal in a file would have the name of the lock, also of one that replaced it meanwhile.
    database.exec("PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE")
    return true
  } catch (cause) {
    if (codeOf(cause) === busy) return false
    throw cause
  }
}

/**
 * The lock of a file. When it is released, the file is deleted unless `isNeeded`: locks of keys that have no value any
 * more would pile up. A process that waits for a deleted file finds out and opens the new one.
 */
export const makeFileLock = (path: string, isNeeded: () => boolean): SharedLock<TokenStoreError> => {
  let opened: Opened | undefined
  let isHeld = false
  const close = () => {
    opened?.database.close()
    opened = undefined
  }
  const tryAcquire = (): "held" | "busy" | "replaced" => {
    opened ??= open(path)
    if (opened === undefined) return "replaced"
    if (!tryLock(opened.database)) return "busy"
    if (isSame(opened.file, ifExists(path))) return "held"
    close()
    return "replaced"
  }
  const acquire: Effect.Effect<void, TokenStoreError> = Effect.suspend(() =>
    Effect.flatMap(Effect.try({ try: tryAcquire, catch: (cause) => lockError(path, cause) }), (outcome) => {
      isHeld = outcome === "held"
      if (isHeld) return Effect.void
      return outcome === "busy" ? Effect.andThen(pause, acquire) : acquire
    })
  )
  return {
    acquire,
    // Others look for the lock every 15 to 45 ms.
    giveWay: Effect.sleep(60),
    release: Effect.sync(() => {
      try {
        if (isHeld && !isNeeded()) unlinkSync(path)
      } catch {
        // Windows does not delete an open file. It stays.
      }
      // Ends the transaction. After a failed or interrupted wait there is none.
      close()
    })
  }
}
