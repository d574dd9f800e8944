/**
 * Turns the failure of a handler into the error that the client receives.
 */
import * as McpError from "@skein/protocol/McpError"
import * as Revision from "@skein/protocol/Revision"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { HandlerError } from "../../HandlerError.ts"
import * as InputError from "../../InputError.ts"

/** Returns the error's message, or its tag or name if the message is empty. An untyped handler may fail with a text. */
export const messageOf = (error: HandlerError & { readonly _tag?: unknown; readonly name?: unknown }): string =>
  typeof error === "string" ? error : error?.message || String(error?._tag ?? error?.name ?? "Error")

const isMissingCapability = (error: HandlerError): error is InputError.InputError =>
  error instanceof InputError.InputError && error.reason._tag === "MissingCapability"

/**
 * Whether a failure is that of `Effect.tryPromise` or `Effect.try` without `catch`. Its message does not describe it, and
 * its cause may contain secrets. It is handled as the defect that it would be with `Effect.promise`.
 */
export const isUnknown: (error: unknown) => boolean = Cause.isUnknownError

/** The failures of handlers, by the results and errors that they became: for middleware. */
const failures = new WeakMap<object, HandlerError>()

/** Records the failure that a result or an error stands for. */
export const recordFailure = <A extends object>(made: A, failure: HandlerError): A => {
  failures.set(made, failure)
  return made
}

/** Returns the failure that a result or an error stands for, if a handler failed with one. */
export const failureOf = (made: object): HandlerError | undefined => failures.get(made)

/** Records the failure of a result for a changed copy of it. A result without `isError` stands for none. */
export const withFailureOf = <A extends object>(result: object, copy: A): A => {
  if (!("isError" in result) || copy === result) return copy
  const failure = failureOf(result)
  return failure === undefined ? copy : recordFailure(copy, failure)
}

/** Returns the failure of an operation and whether it is a defect: `undefined` after a success and an interruption. */
export const failureOfExit = (
  exit: Exit.Exit<object, McpError.McpError>
): { readonly error: unknown; readonly isDefect: boolean } | undefined => {
  if (Exit.isSuccess(exit)) {
    const error = failureOf(exit.value)
    return error === undefined ? undefined : { error, isDefect: false }
  }
  const defect = exit.cause.reasons.find(Cause.isDieReason)
  if (defect !== undefined) return { error: defect.defect, isDefect: true }
  const failure = exit.cause.reasons.find(Cause.isFailReason)
  return failure === undefined ? undefined : { error: failureOf(failure.error) ?? failure.error, isDefect: false }
}

/**
 * Fails with the JSON-RPC error for the failure of a prompt, a reader or a completer: the failure itself if it is one,
 * else `-32603`. An unknown failure is a defect.
 */
export const failWithMcpError = (error: HandlerError): Effect.Effect<never, McpError.McpError> => {
  if (McpError.isMcpError(error)) return Effect.fail(error)
  if (isUnknown(error)) return Effect.die(error)
  if (isMissingCapability(error)) return Effect.fail(recordFailure(InputError.toMcpError(error), error))
  const made = new McpError.McpError({ reason: "InternalError", message: messageOf(error) })
  return Effect.fail(recordFailure(made, error))
}

/**
 * The JSON-RPC error for the failure of a tool, or `undefined` if the failure becomes a result with `isError`. In a
 * session-based revision a missing capability becomes such a result, because a model can act on it. 2026-07-28 requires
 * `-32021`.
 */
export const toolErrorOf = (error: HandlerError): McpError.McpError | undefined => {
  if (McpError.isMcpError(error)) return error
  return isMissingCapability(error) && Revision.era(error.revision) === "stateless"
    ? recordFailure(InputError.toMcpError(error), error)
    : undefined
}
