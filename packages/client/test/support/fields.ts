import { assert } from "@effect/vitest"
import type { ClientError } from "@skein/client/ClientError"
import type { TransportError } from "@skein/runtime/TransportError"

/** The members of an error and of its reason in one object, for assertions on any of them. */
export const fieldsOf = (failure: ClientError | TransportError | undefined) => {
  assert.isDefined(failure)
  const { cause, message, reason, undelivered } = failure!
  return {
    reason: reason._tag,
    message,
    undelivered,
    cause,
    method: "method" in failure! ? failure.method : undefined,
    retryAfter: "retryAfter" in failure! ? failure.retryAfter : undefined,
    error: "error" in reason ? reason.error : undefined,
    result: "result" in reason ? reason.result : undefined,
    problems: "problems" in reason ? reason.problems : undefined,
    end: "end" in reason ? reason.end : undefined,
    status: "status" in reason ? reason.status : undefined
  }
}
