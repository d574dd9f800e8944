/**
 * The parts that all adapters share: the services that they run with, and the principal that an application finds.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import { McpServer } from "../../../McpServer.ts"
import { internals } from "../../catalog/catalogState.ts"
import * as logs from "../../base/logs.ts"
import type { HttpAnswer, HttpRequest } from "../messages/adapter.ts"
import type { Endpoint } from "../endpoint/endpoint.ts"
import type { FindPrincipal } from "../access/protection.ts"

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

/** Handles a request. If its principal is not set, `find` finds it from the platform's `message`. */
export const handle = <Request>(
  endpoint: Pick<Endpoint, "handle">,
  find: FindPrincipal<Request> | undefined,
  message: Request,
  request: HttpRequest,
  answer: HttpAnswer
): void => {
  if (find === undefined || request.principal !== undefined) return endpoint.handle(request, answer)
  endpoint.handle(request, answer, (_, answer) => find(message, answer))
}
