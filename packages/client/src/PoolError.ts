/**
 * The errors of a `ClientPool`: a server was not found, or could not be added.
 */
import * as Data from "effect/Data"

/** The pool has no server of that name. */
export class ServerNotFound extends Data.TaggedError("ServerNotFound")<{
  readonly message: string
  readonly server: string
}> {}

/** The pool already has a server of that name. */
export class DuplicateName extends Data.TaggedError("DuplicateName")<{
  readonly message: string
  readonly server: string
}> {}

/** The pool already has as many servers as `maxServers` allows. */
export class LimitExceeded extends Data.TaggedError("LimitExceeded")<{
  readonly message: string
  readonly maxServers: number
}> {}

/** The reasons of a `PoolError`. */
export type Reason = ServerNotFound | DuplicateName | LimitExceeded

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
export class PoolError extends Data.TaggedError("PoolError")<{
  readonly reason: Reason
  readonly message: string
}> {
  constructor(fields: { readonly reason: Reason }) {
    super({ reason: fields.reason, message: fields.reason.message })
  }
}
