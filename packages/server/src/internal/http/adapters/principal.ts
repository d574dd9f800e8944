/**
 * Who makes a request, where a host has told how to find that out.
 */
import type { Principal } from "@skein/runtime/Connection"
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { HttpAnswer } from "../adapter.ts"
import { refuse } from "../refusal.ts"

/** Finds it out. What it fails with or throws is a fault of the host's. */
export type FindPrincipal<Request> = (
  request: Request
) => Principal | undefined | Effect.Effect<Principal | undefined, unknown>

// A fault of the host's says nothing of itself to the client.
const unknown = { _tag: "Refused", status: 500, error: { code: -32603, message: "Internal error" } } as const

/** Goes on with what was found out, at once where the host knows it; or logs the fault, and answers with 500. */
export const identify = <Request>(
  find: FindPrincipal<Request>,
  context: Context.Context<never>,
  request: Request,
  answer: HttpAnswer,
  then: (principal: Principal | undefined) => void
): void => {
  const failed = (defect: unknown): void => {
    Effect.runForkWith(context)(Effect.logError("Who makes a request could not be found out", defect))
    refuse(answer, unknown)
  }
  let found: ReturnType<FindPrincipal<Request>>
  try {
    found = find(request)
  } catch (defect) {
    return failed(defect)
  }
  if (!Effect.isEffect(found)) return then(found)
  const finding = Effect.runForkWith(context)(found)
  finding.addObserver((exit) => {
    if (Exit.isSuccess(exit)) then(exit.value)
    else if (!answer.over) failed(exit.cause)
  })
  // Nobody wants to know it any more when the client is gone.
  if (finding.pollUnsafe() === undefined) answer.onClose(() => finding.interruptUnsafe())
}
