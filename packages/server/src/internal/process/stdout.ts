/**
 * Reserves stdout for the protocol (revision 2026-07-28, basic/transports/stdio: the server MUST NOT write anything to
 * its stdout that is not a valid MCP message).
 *
 * While stdout is guarded, `process.stdout.write` and `end` write to stderr, and so do `console.log`, streams that are
 * piped to stdout, and loggers. Writes to the file descriptor itself (`fs.writeSync(1, …)`, a child process that
 * inherits it) are not redirected.
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"

type Write = (text: string, done?: (error?: Error | null) => void) => boolean

interface Guard {
  /** Writes to the real stdout. */
  readonly write: Write
  /** Restores `process.stdout`. */
  readonly restore: () => void
  /** How many guards are active. */
  holders: number
  /** Whether a connection writes to stdout now. */
  owned: boolean
}

// The guard is stored on the stream and not in this module, so that two copies of this package share one guard.
const key = Symbol.for("@skein/server/stdout")

const ignore = (): void => {}

const redirect = (...args: ReadonlyArray<unknown>): boolean => {
  ;(process.stderr.write as (...args: ReadonlyArray<unknown>) => boolean)(...args)
  return true
}

const redirectEnd = (...args: ReadonlyArray<unknown>): NodeJS.WriteStream => {
  if (typeof args[0] === "function") args[0]()
  else if (args[0] !== undefined && args[0] !== null) redirect(...args)
  return process.stdout
}

/** Replaces a method of stdout. Returns a function that restores it, unless other code has replaced it meanwhile. */
const replace = (name: "write" | "end", value: unknown): () => void => {
  const { stdout } = process
  const before = Object.getOwnPropertyDescriptor(stdout, name)
  Object.defineProperty(stdout, name, { value, configurable: true, writable: true })
  return () => {
    if (stdout[name] !== value) return
    if (before === undefined) delete (stdout as Partial<typeof stdout>)[name]
    else Object.defineProperty(stdout, name, before)
  }
}

const acquire = (): Guard => {
  const stdout = process.stdout as typeof process.stdout & { [key]?: Guard | undefined }
  let guard = stdout[key]
  if (guard === undefined) {
    const write = stdout.write.bind(stdout) as Write
    const restoreWrite = replace("write", redirect)
    const restoreEnd = replace("end", redirectEnd)
    // If the client closes stderr, a log message must not end the server.
    process.stderr.on("error", ignore)
    const restore = () => {
      restoreWrite()
      restoreEnd()
      process.stderr.off("error", ignore)
      delete stdout[key]
    }
    guard = { write, restore, holders: 0, owned: false }
    Object.defineProperty(stdout, key, { value: guard, configurable: true })
  }
  guard.holders++
  return guard
}

const release = (guard: Guard): void => {
  if (--guard.holders === 0) guard.restore()
}

/** Guards stdout until the process ends. Guards may be nested. */
export const guard = (): void => void acquire()

/**
 * Guards stdout and reserves it until the scope closes. Returns the function that writes to it; `undefined` if it is
 * reserved already, since two servers cannot share it.
 */
export const take: Effect.Effect<Write | undefined, never, Scope.Scope> = /* @__PURE__ */ Effect.map(
  /* @__PURE__ */ Effect.acquireRelease(
    /* @__PURE__ */ Effect.sync(() => {
      const guard = acquire()
      const mine = !guard.owned
      guard.owned = true
      return { guard, mine }
    }),
    ({ guard, mine }) =>
      Effect.sync(() => {
        if (mine) guard.owned = false
        release(guard)
      })
  ),
  ({ guard, mine }) => mine ? guard.write : undefined
)
