/**
 * Verifies an assumed server profile after the first failure on its connection: a client that stores the result of a
 * negotiation is "re-probing if the cached assumption later fails" (2026-07-28, versioning).
 */
import * as Effect from "effect/Effect"
import type { ClientError } from "../../ClientError.ts"
import type { NegotiatedConnection } from "./connection.ts"
import { fromRequest } from "../calls/failure.ts"

/** Client errors of HTTP that do not depend on the revision of the server: too slow, too many requests. */
const unrelated: ReadonlySet<number | undefined> = new Set([408, 429])

/**
 * Whether a failure may mean that the server has changed. Then the server has certainly not handled the request, which
 * is why an internal error does not count: the server had begun to handle it.
 */
export const isDoubtful = ({ reason }: ClientError): boolean => {
  if (reason._tag === "ProtocolError") return reason.error.reason !== "InternalError"
  if (reason._tag !== "HttpError" || reason.status === undefined) return false
  return reason.status >= 400 && reason.status < 500 && !unrelated.has(reason.status)
}

/**
 * Checks the assumption with `server/discover`, which every server of the stateless revision answers. A doubtful
 * failure of that request refutes the assumption as well. If the server cannot be asked now, the assumption stays
 * unverified.
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
