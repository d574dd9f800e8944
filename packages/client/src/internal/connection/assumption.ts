/**
 * What to think of the first failure on a line about which something is only assumed: a client that keeps what it found
 * out about a server is "re-probing if the cached assumption later fails" (2026-07-28, versioning).
 */
import * as Effect from "effect/Effect"
import type { ClientError } from "../../ClientError.ts"
import type { NegotiatedConnection } from "./connection.ts"
import { fromRequest } from "../calls/failure.ts"

/** Refusals that say nothing about what the server speaks: too slow, too much. */
const unrelated: ReadonlySet<number | undefined> = new Set([408, 429])

/**
 * Whether a failure may come from a server that is another one than was assumed. It surely has not done what it was
 * asked for then: an internal error is the failure of something that was begun.
 */
export const isDoubtful = ({ reason }: ClientError): boolean => {
  if (reason._tag === "ProtocolError") return reason.error.reason !== "InternalError"
  if (reason._tag !== "HttpError" || reason.status === undefined) return false
  return reason.status >= 400 && reason.status < 500 && !unrelated.has(reason.status)
}

/**
 * Asks whether the server is what it was taken for, with the one request that every server of the request era answers.
 * When it cannot be asked now the doubt remains.
 */
export const refutes = (connection: NegotiatedConnection, timeout: number): Effect.Effect<boolean> =>
  Effect.match(connection.peer.request("server/discover", connection.stamp({}), { timeout, maxTimeout: timeout }), {
    onSuccess: (result) => {
      const versions = result["supportedVersions"]
      connection.isAssumed = !Array.isArray(versions) || !versions.includes(connection.revision)
      return connection.isAssumed
    },
    onFailure: (error) => isDoubtful(fromRequest("server/discover", error))
  })
