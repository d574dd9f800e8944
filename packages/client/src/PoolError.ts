/**
 * The errors of a `ClientPool`: a server or a tool was not found, or a server could not be added or is configured wrongly.
 *
 * The messages about a configuration contain the names of its members and variables, and never their values.
 */
import * as PrintableError from "@skein/protocol/PrintableError"

/** The pool has no server of that name. */
export class ServerNotFound extends PrintableError.tagged("ServerNotFound")<{
  readonly server: string
}> {}

/** The toolkit of the pool has no tool of that name: a language model made it up, or the tool was left out. */
export class ToolNotFound extends PrintableError.tagged("ToolNotFound")<{
  readonly tool: string
}> {}

/** The pool already has a server of that name. */
export class DuplicateName extends PrintableError.tagged("DuplicateName")<{
  readonly server: string
}> {}

/** The pool already has as many servers as `maxServers` allows. */
export class LimitExceeded extends PrintableError.tagged("LimitExceeded")<{
  readonly maxServers: number
}> {}

/** A configuration could not be read: the file is missing, is too large, or may not be read. */
export class ConfigUnreadable extends PrintableError.tagged("ConfigUnreadable")<{
  /** The path of the file. */
  readonly source: string
  readonly cause?: unknown
}> {}

/** A configuration is not JSON, or lists no servers. */
export class InvalidConfig extends PrintableError.tagged("InvalidConfig")<{
  /** The path of the file, or `the configuration`. */
  readonly source: string
}> {}

/** The entry of one server in a configuration is invalid. The other entries are not affected. */
export class InvalidEntry extends PrintableError.tagged("InvalidEntry")<{
  readonly source: string
  readonly server: string
}> {}

/** The entry of one server uses a variable that has no value and no default. The other entries are not affected. */
export class MissingVariable extends PrintableError.tagged("MissingVariable")<{
  readonly source: string
  readonly server: string
  /** The variable as the entry has it: `env:TOKEN`, `input:key` or `TOKEN`, for example. */
  readonly variable: string
}> {}

/** The reasons of a `PoolError`. */
export type Reason =
  | ServerNotFound
  | ToolNotFound
  | DuplicateName
  | LimitExceeded
  | ConfigUnreadable
  | InvalidConfig
  | InvalidEntry
  | MissingVariable

/**
 * The failure of a `ClientPool`. The failure of a server in the pool is a `ClientError`.
 *
 * @example
 * ```ts
 * pool.client("weather").pipe(
 *   Effect.catchReason("PoolError", "ServerNotFound", ({ server }) => Effect.die(`${server} is not configured`))
 * )
 * ```
 */
export class PoolError extends PrintableError.withReason("PoolError")<{
  readonly reason: Reason
}> {}
