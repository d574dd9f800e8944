/**
 * Runs the function that finds the principal of a request.
 */
import * as Awaitable from "@skein/runtime/Awaitable"
import type { Principal } from "@skein/runtime/Connection"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Predicate from "effect/Predicate"
import type { HttpAnswer, HttpRequest } from "../messages/adapter.ts"
import type { EndpointContext } from "../sessions/context.ts"
import { type FindPrincipal, principalProblem, type Refusal } from "../access/protection.ts"
import { type HttpRefusal, invalid } from "../messages/refusals.ts"

// The client learns nothing about a fault of the application.
const internalError = { status: 500, error: { code: -32603, message: "Internal error" } } as const

// By its tag: a program with the package `skein` and this one has two classes of it.
const isRefusal = (error: unknown): error is Refusal => {
  if (!Predicate.isTagged(error, "Refusal")) return false
  const { status } = error as Refusal
  return Number.isInteger(status) && status >= 400 && status <= 599
}

const toHttpRefusal = ({ headers, message, status }: Refusal): HttpRefusal =>
  status < 500 ? invalid(status, message, headers) : { status, error: { code: -32603, message }, headers }

/** Finds the principal of a request, sets it on the request and calls `then`; or answers the request. */
export const identify = (
  find: FindPrincipal,
  { context, refuse }: Pick<EndpointContext, "context" | "refuse">,
  request: HttpRequest,
  answer: HttpAnswer,
  then: () => void
): void => {
  const found = (principal: Principal | undefined): void => {
    const problem = principalProblem(principal)
    if (problem !== undefined) return failed(Cause.fail(problem))
    request.principal = principal
    then()
  }
  const failed = (cause: Cause.Cause<unknown>): void => {
    const error = cause.reasons.find(Cause.isFailReason)?.error
    if (isRefusal(error)) {
      try {
        return refuse(answer, toHttpRefusal(error))
      } catch (invalidHeader) {
        // Nothing was sent.
        return failed(Cause.die(invalidHeader))
      }
    }
    Effect.runForkWith(context)(Effect.logError("failed to find the principal of a request", cause))
    refuse(answer, internalError)
  }
  let effect: Principal | undefined | Effect.Effect<Principal | undefined, unknown>
  try {
    effect = Awaitable.settle(find(request, answer))
  } catch (error) {
    return failed(Cause.fail(error))
  }
  if (!Effect.isEffect(effect)) return found(effect)
  const ended = (exit: Exit.Exit<Principal | undefined, unknown>): void => {
    if (Exit.isSuccess(exit)) found(exit.value)
    else if (!answer.isClosed) failed(exit.cause)
  }
  // `Effect.fail(refusal)` is an exit. It costs no fiber, so that a flood of refused requests is cheap.
  if (Exit.isExit(effect)) return ended(effect as Exit.Exit<Principal | undefined, unknown>)
  const finding = Effect.runForkWith(context)(effect)
  const exit = finding.pollUnsafe()
  if (exit !== undefined) return ended(exit)
  finding.addObserver(ended)
  // When the client disconnects, the principal is no longer needed.
  answer.onClose(() => finding.interruptUnsafe())
}
