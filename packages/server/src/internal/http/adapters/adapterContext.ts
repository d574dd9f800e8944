import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import { McpServer } from "../../../McpServer.ts"
import { internals } from "../../catalog/catalogState.ts"
import * as logs from "../../base/logs.ts"

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
