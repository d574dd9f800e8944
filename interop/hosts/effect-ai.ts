/** The server of `effect/ai` over HTTP. */
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import * as McpServer from "effect/ai/McpServer"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as HttpRouter from "effect/http/HttpRouter"
import type * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import { protocols } from "../fixtures/effect-protocols.ts"
import * as Offer from "../fixtures/effect-offer.ts"
import { type Host, host } from "./host.ts"

export type Registrations = Layer.Layer<never, never, McpServer.McpServer>

/** One endpoint for all revisions. */
export const serve = (registrations: () => Registrations): Promise<Host> =>
  host(async () => {
    const scope = Scope.makeUnsafe()
    const endpoint = McpServer.layerHttp({
      ...Offer.server,
      path: "/mcp",
      protocols: protocols(),
      allowSessionTermination: true,
      registrations: registrations()
    })
    const handler = HttpRouter.toHttpEffect(endpoint).pipe(
      Effect.flatMap((app) => NodeHttpServer.makeHandler(app, { scope })),
      Scope.provide(scope)
    )
    return { listener: await Effect.runPromise(handler), end: () => Effect.runPromise(Scope.close(scope, Exit.void)) }
  })
