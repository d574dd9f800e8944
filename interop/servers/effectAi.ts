/** The server of `effect/ai` over HTTP, with one endpoint for all revisions. */
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import * as McpServer from "effect/ai/McpServer"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as HttpRouter from "effect/http/HttpRouter"
import type * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import { protocols } from "../fixtures/effectAiProtocols.ts"
import * as Features from "../fixtures/effectAiFeatures.ts"
import { type HttpServer, startHttpServer } from "./httpServer.ts"

export type Registrations = Layer.Layer<never, never, McpServer.McpServer>

export const startServer = (registrations: () => Registrations): Promise<HttpServer> =>
  startHttpServer(async () => {
    const scope = Scope.makeUnsafe()
    const endpoint = McpServer.layerHttp({
      ...Features.server,
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
