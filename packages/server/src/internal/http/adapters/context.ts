/**
 * What a door does beside the handling of requests, it does with the services of its server: its loggers hear of it.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import { McpServer } from "../../../McpServer.ts"
import { internals } from "../../catalogState.ts"
import * as logs from "../../observability/logs.ts"

/** The services around, and those of the server before them. A scope that a request found, it would fill. */
export const adapterContext: Effect.Effect<Context.Context<never>, never, McpServer> = /* @__PURE__ */ Effect.map(
  /* @__PURE__ */ Effect.context<McpServer>(),
  (context) => {
    const around: Context.Context<never> = Context.omit(Scope.Scope, Layer.CurrentMemoMap)(
      context as Context.Context<McpServer | Scope.Scope>
    )
    return logs.withServerServices(around, Context.get(context, McpServer)[internals].catalog[internals].base)
  }
)
