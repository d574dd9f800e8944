/**
 * A server as routes of Effect's `HttpRouter`, beside the other routes of an application and behind its middleware.
 *
 * @example
 * const App = Layer.mergeAll(MyRoutes, HttpRoutes.layer({ path: "/mcp" }))
 * HttpRoutes.serve(App).pipe(Layer.provide([Server, NodeHttpServer.layer(createServer, { port: 3000 })]))
 */
import type { Principal } from "@skein/runtime/Connection"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as HttpRouter from "effect/http/HttpRouter"
import * as HttpServer from "effect/http/HttpServer"
import { HttpServerRequest } from "effect/http/HttpServerRequest"
import type { HttpServerResponse } from "effect/http/HttpServerResponse"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import * as Http from "./Http.ts"
import * as adapter from "./internal/http/adapters/router.ts"
import type { McpServer } from "./McpServer.ts"

/**
 * How the route answers. `path` is where it is added, in the syntax of the router, `/mcp` by default. `maxBodyBytes` takes the place of
 * the `MaxBodySize` of `effect/http`. The paths of `legacySse` are routes of their own, and the one that clients are told has no
 * prefix of a router.
 */
export interface Options extends Omit<Http.Options, "path"> {
  readonly path?: HttpRouter.PathInput | undefined
}

/**
 * Who makes the request: what a middleware of the router has found out. None by default.
 *
 * @example
 * const Authenticated = HttpRouter.middleware(
 *   Effect.succeed((route) => Effect.provideServiceEffect(route, HttpRoutes.CurrentPrincipal, whoIs))
 * )
 * const Mcp = HttpRoutes.layer().pipe(Layer.provide(Authenticated.layer))
 */
export const CurrentPrincipal: Context.Reference<Principal | undefined> = /* @__PURE__ */ Context.Reference(
  "@skein/server/HttpRoutes/CurrentPrincipal",
  { defaultValue: (): Principal | undefined => undefined }
)

/** The endpoints that have to end before the HTTP server of `serve` does. */
const Open = /* @__PURE__ */ Context.Reference(
  "@skein/server/HttpRoutes/Open",
  { defaultValue: (): Set<Scope.Closeable> | undefined => undefined }
)

/**
 * Adds the endpoint's route to the router, for all verbs, and those of `legacySse`. Other paths are the router's, and its 404.
 *
 * Handlers find the services that the middleware of the route provides per request: ask for one that only some requests have
 * with `Effect.serviceOption`, or let it be a `Context.Reference`. In the session era they find those of the request that brought
 * their message. The scope of the route is not among them, since it may end earlier.
 *
 * Serve it with `HttpRoutes.serve`: with `HttpRouter.serve` the HTTP server waits for open streams when it is told to end, until
 * its own time is up, and then cuts them.
 */
export const layer = (options: Options = {}): Layer.Layer<never, never, HttpRouter.HttpRouter | McpServer> =>
  Layer.effectDiscard(Effect.gen(function*() {
    const router = yield* HttpRouter.HttpRouter
    // Closed by whoever comes first: the HTTP server, or the layer.
    const scope = yield* Scope.fork(yield* Effect.scope)
    const endpoint = yield* Scope.provide(Http.make({ ...options, path: "*" }), scope)
    const open = yield* Open
    open?.add(scope)
    const { legacySse, path = "/mcp" } = options
    const legacy = legacySse === undefined ? [] : [legacySse.path, legacySse.messages]
    for (const one of [path, ...legacy]) yield* router.add("*", one as HttpRouter.PathInput, route(endpoint))
  }))

const route = (
  endpoint: Http.Endpoint
): Effect.Effect<HttpServerResponse, never, HttpServerRequest | Scope.Scope> =>
  Effect.withFiber((fiber) => {
    const context = fiber.context as Context.Context<HttpServerRequest | Scope.Scope>
    return Effect.callback((settle) => {
      const answer = new adapter.RouterAnswer(Context.get(context, Scope.Scope), settle)
      const principal = Context.get(context, CurrentPrincipal)
      endpoint.handle(
        new adapter.RouterRequest(Context.get(context, HttpServerRequest), answer, context, principal),
        answer
      )
      return Effect.sync(() => answer.left())
    })
  })

/**
 * `HttpRouter.serve`, for an application with endpoints in it. When its scope closes they end first, within their grace, while the
 * HTTP server still stands: subscriptions get their result and streams their end. Then nothing is open that it would wait for.
 */
export const serve: typeof HttpRouter.serve = (app, options) => Layer.provide(HttpRouter.serve(app, options), ending)

/** The HTTP server, which ends the endpoints before it ends itself. */
const ending: Layer.Layer<HttpServer.HttpServer, never, HttpServer.HttpServer> = Layer.effectContext(
  Effect.map(HttpServer.HttpServer, (server) => {
    const open = new Set<Scope.Closeable>()
    const close = Effect.suspend(() =>
      Effect.forEach(open, (scope) => Scope.close(scope, Exit.void), { concurrency: "unbounded", discard: true })
    )
    const wrapped = HttpServer.make({
      address: server.address,
      // What is added last runs first.
      serve: (effect, middleware) =>
        Effect.andThen(
          // Its overloads want it said, or not said.
          server.serve(effect, middleware as never),
          Effect.addFinalizer(() => close)
        )
    })
    return Context.add(Context.make(HttpServer.HttpServer, wrapped), Open, open)
  })
)
