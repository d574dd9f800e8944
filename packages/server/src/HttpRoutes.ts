/**
 * A server as routes of Effect's `HttpRouter`, beside the other routes of an application and inside of its middleware.
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
import { credentialHeaders, withholds } from "./internal/http/access/protection.ts"
import type { McpServer } from "./McpServer.ts"

/**
 * Options of the routes. `path` is in the syntax of the router, `/mcp` by default. `limits.maxMessageBytes` replaces the
 * `MaxBodySize` of `effect/http`. The paths of `legacySse` are separate routes, and the one that clients receive has no
 * prefix of a router.
 */
export interface Options extends Omit<Http.Options, "path"> {
  readonly path?: HttpRouter.PathInput | undefined
}

/**
 * The principal of the current request, for a middleware of the router to set. `undefined` by default.
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

/** The endpoints that must end before the HTTP server of `serve` does. */
const Open = /* @__PURE__ */ Context.Reference(
  "@skein/server/HttpRoutes/Open",
  { defaultValue: (): Set<Scope.Closeable> | undefined => undefined }
)

/**
 * Adds the route of the endpoint to the router, for all HTTP methods, and those of `legacySse`, of the pages of
 * `protection` and of the `serverCard`, which have no prefix of a router either. The router answers all other paths.
 *
 * Handlers have the services that the middleware of the route provides per request. Read a service that only some
 * requests have with `Effect.serviceOption`, or define it as a `Context.Reference`. In a session-based revision
 * handlers have the services of the HTTP request that carried their message. The scope of the route is not among them,
 * because it may close earlier.
 *
 * Serve the router with `HttpRoutes.serve`. With `HttpRouter.serve` the HTTP server waits for open streams at shutdown
 * until its own timeout, and then cuts them, as if the clients had left: calls that wait on them are cancelled.
 *
 * @example
 * const Mcp = HttpRoutes.layer({ path: "/mcp", allowedHosts: ["mcp.example.com"] })
 */
export const layer = (given: Options = {}): Layer.Layer<never, never, HttpRouter.HttpRouter | McpServer> =>
  Layer.effectDiscard(Effect.gen(function*() {
    const router = yield* HttpRouter.HttpRouter
    const options = yield* Http.withParts(given)
    // Closed by the HTTP server or by the layer, whichever ends first.
    const scope = yield* Scope.fork(yield* Effect.scope)
    const endpoint = yield* Scope.provide(Http.make({ ...options, path: "*" }), scope)
    const open = yield* Open
    open?.add(scope)
    const { pages: ownPages, protection, serverCard } = options
    const pages = [...protection?.paths ?? [], ...ownPages?.paths ?? [], ...serverCard?.paths ?? []]
    for (const path of Http.paths({ ...options, pages: undefined, protection: undefined, serverCard: undefined })) {
      yield* router.add("*", path as HttpRouter.PathInput, route(endpoint, options))
    }
    for (const path of pages) {
      yield* router.add("*", path as HttpRouter.PathInput, route(endpoint, options, notPage))
    }
  }))

// The router takes a path for that of a page if it has a slash at its end, for example, and the page does not. Such a
// request must not reach the endpoint: proxies may make the paths of pages public.
const notPage: Http.FindPrincipal = () => notFound
const notFound = /* @__PURE__ */ Effect.fail(
  /* @__PURE__ */ new Http.Refusal({ status: 404, message: "Not Found: there is no such page here" })
)

const route = (
  endpoint: Http.Endpoint,
  options: Options & { readonly protection?: Http.Protection | undefined },
  find?: Http.FindPrincipal
): Effect.Effect<HttpServerResponse, never, HttpServerRequest | Scope.Scope> => {
  const { trustedProxies = 0 } = options
  const headers = credentialHeaders(options)
  return Effect.withFiber((fiber) => {
    const context = fiber.context as Context.Context<HttpServerRequest | Scope.Scope>
    return Effect.callback((settle) => {
      const request = Context.get(context, HttpServerRequest)
      const answer = new adapter.RouterAnswer(request, Context.get(context, Scope.Scope), settle)
      const principal = Context.get(context, CurrentPrincipal)
      const withheld = withholds(options, principal) ? headers : undefined
      const wrapped = new adapter.RouterRequest(request, answer, context, principal, trustedProxies, withheld)
      endpoint.handle(wrapped, answer, find)
      return Effect.sync(() => answer.left())
    })
  })
}

/**
 * `HttpRouter.serve` for an application with endpoints. When its scope closes, the endpoints end first, within their
 * `shutdownTimeout`, while the HTTP server is still running: subscriptions receive their results, and streams end. The
 * HTTP server then has no open stream to wait for.
 *
 * @example
 * HttpRoutes.serve(App).pipe(Layer.provide([Server, NodeHttpServer.layer(createServer, { port: 3000 })]))
 */
export const serve: typeof HttpRouter.serve = (app, options) => Layer.provide(HttpRouter.serve(app, options), ending)

/** Wraps the HTTP server so that it ends the endpoints before itself. */
const ending: Layer.Layer<HttpServer.HttpServer, never, HttpServer.HttpServer> = Layer.effectContext(
  Effect.map(HttpServer.HttpServer, (server) => {
    const open = new Set<Scope.Closeable>()
    const close = Effect.suspend(() =>
      Effect.forEach(open, (scope) => Scope.close(scope, Exit.void), { concurrency: "unbounded", discard: true })
    )
    const wrapped = HttpServer.make({
      address: server.address,
      // The finalizer that is added last runs first.
      serve: (effect, middleware) =>
        Effect.andThen(
          // The overloads of `serve` do not accept an optional middleware.
          server.serve(effect, middleware as never),
          Effect.addFinalizer(() => close)
        )
    })
    return Context.add(Context.make(HttpServer.HttpServer, wrapped), Open, open)
  })
)
