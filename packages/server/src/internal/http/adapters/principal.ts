/**
 * The parts that all adapters share: the services that they run with, and the search for the principal of a request.
 */
import type { Principal } from "@skein/runtime/Connection"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import { McpServer } from "../../../McpServer.ts"
import { internals } from "../../catalogState.ts"
import * as logs from "../../observability/logs.ts"
import type { HttpAnswer, HttpRequest } from "../adapter.ts"
import type { Endpoint } from "../endpoint.ts"
import { send } from "../refusals.ts"

/**
 * The surrounding services and those of the server, which take precedence, so that its loggers receive the logs of an
 * adapter. They contain no scope: requests would add resources to it.
 */
export const adapterContext: Effect.Effect<Context.Context<never>, never, McpServer> = /* @__PURE__ */ Effect.map(
  /* @__PURE__ */ Effect.context<McpServer>(),
  (context) => {
    const surrounding: Context.Context<never> = Context.omit(Scope.Scope, Layer.CurrentMemoMap)(
      context as Context.Context<McpServer | Scope.Scope>
    )
    return logs.withServerServices(surrounding, Context.get(context, McpServer)[internals].catalog[internals].base)
  }
)

/** Finds the principal of a request, synchronously or by an effect. An error is a fault of the application. */
export type FindPrincipal<Request> = (
  request: Request
) => Principal | undefined | Effect.Effect<Principal | undefined, unknown>

// The client learns nothing about a fault of the application.
const internalError = { status: 500, error: { code: -32603, message: "Internal error" } } as const

/** Handles a request. If its principal is not set, `find` resolves it first from the platform's `message`. */
export const handle = <Request>(
  endpoint: Pick<Endpoint, "handle">,
  find: FindPrincipal<Request> | undefined,
  context: Context.Context<never>,
  message: Request,
  request: HttpRequest & { principal: Principal | undefined },
  answer: HttpAnswer
): void => {
  if (find === undefined || request.principal !== undefined) return endpoint.handle(request, answer)
  endpoint.handle(request, answer, (then) =>
    findPrincipal(find, context, message, answer, (found) => {
      request.principal = found
      then()
    }))
}

/** Finds the principal of a request and passes it to `then`; or logs the error, and answers with 500. */
const findPrincipal = <Request>(
  find: FindPrincipal<Request>,
  context: Context.Context<never>,
  request: Request,
  answer: HttpAnswer,
  then: (principal: Principal | undefined) => void
): void => {
  const failed = (defect: unknown): void => {
    Effect.runForkWith(context)(Effect.logError("failed to find the principal of a request", defect))
    send(answer, internalError)
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
    else if (!answer.isClosed) failed(exit.cause)
  })
  // When the client disconnects, the principal is no longer needed.
  if (finding.pollUnsafe() === undefined) answer.onClose(() => finding.interruptUnsafe())
}
