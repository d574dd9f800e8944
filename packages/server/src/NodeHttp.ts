/**
 * A server on `node:http`: as a process of its own, as a layer, or as a handler inside of Express, Fastify and their kin.
 *
 * @example
 * NodeHttp.runMain(McpServer.layer({ name: "hello", version: "1.0.0" }, tools), { port: 3000 })
 */
import type { Principal } from "@skein/runtime/Connection"
import type { TransportError } from "@skein/runtime/TransportError"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import type { IncomingMessage, ServerResponse } from "node:http"
import * as Http from "./Http.ts"
import { adapterContext, findPrincipal } from "./internal/http/adapters/principal.ts"
import { loopback } from "./internal/http/options.ts"
import * as adapter from "./internal/http/adapters/node.ts"
import * as server from "./internal/http/adapters/nodeServer.ts"
import * as main from "./internal/stdio/nodeMain.ts"
import type { McpServer } from "./McpServer.ts"

/** What a host has found out about a request before it gave it away. */
export interface RequestInput extends adapter.RequestInput {}

/**
 * Finds out who makes a request. The type of its parameter is what the host makes of an `IncomingMessage`, which the host alone knows:
 * that it is right nobody checks.
 */
export type FindPrincipal = {
  // As a method, since the parameter of a method may be a subtype.
  find(request: IncomingMessage): Principal | undefined | Effect.Effect<Principal | undefined, unknown>
}["find"]

/** How requests are taken over from a host. */
export interface HandlerOptions extends Http.Options {
  /**
   * Who makes a request, where the handler is not told with it: read from what the host's own middleware has left on it
   * (`(request: express.Request) => request.user`), or found out here, once Host, Origin and path have passed. What it fails
   * with or throws is logged, and the request answered with 500. It is interrupted when the client leaves.
   */
  readonly principal?: FindPrincipal | undefined
  /**
   * How long a client may take nothing of an answer that is complete: 60 seconds by default. Then the connection is closed. One that
   * reads slowly is none of these.
   */
  readonly sendTimeout?: Duration.Input | undefined
}

/**
 * Answers a request of `node:http`. The third argument tells what is known of it; a function there (the `next` of Express) is
 * ignored. With Fastify: `reply.hijack(); handler(request.raw, reply.raw, { body: request.body })`.
 */
export type Handler = (
  request: IncomingMessage,
  response: ServerResponse,
  given?: RequestInput | ((error?: unknown) => void)
) => void

/** How a server listens, and what bounds its connections. */
export interface Options extends HandlerOptions {
  /** 3000 by default, 0 for one that is free. */
  readonly port?: number | undefined
  /**
   * The address to listen on: `127.0.0.1` by default, so that nobody else's machine reaches it. A name or address given here that is
   * not a wildcard is among the `allowedHosts`, unless those are given.
   */
  readonly host?: string | undefined
  /** How long the head of a request may take: 15 seconds by default. Then 408, and the connection is closed. */
  readonly headersTimeout?: Duration.Input | undefined
  /** How long a request may take to arrive, its body included: 60 seconds by default. Then the same. */
  readonly requestTimeout?: Duration.Input | undefined
  /** How long a connection may be idle between requests: 65 seconds by default, more than a proxy keeps its own. */
  readonly keepAliveTimeout?: Duration.Input | undefined
  /** How many connections there may be: 20,000 by default. At the bound a new one is closed at once. */
  readonly maxConnections?: number | undefined
}

/** Where a server listens. */
export class Server extends Context.Service<Server, {
  readonly host: string
  readonly port: number
  /** The endpoint's address for clients. */
  readonly url: string
  readonly endpoint: Http.Endpoint
}>()("@skein/server/NodeHttp/Listening") {}

interface Made {
  readonly handler: Handler
  readonly endpoint: Http.Endpoint
  readonly shared: adapter.Shared
}

const prepare = (
  endpoint: Http.Endpoint,
  options: HandlerOptions,
  context: Context.Context<never>,
  expects: boolean
): Made => {
  const shared: adapter.Shared = {
    closing: false,
    expects,
    sendTimeout: Duration.toMillis(options.sendTimeout ?? 60_000)
  }
  const { principal } = options
  const handler: Handler = (message, response, more) => {
    const given = typeof more === "function" ? undefined : more
    const answer = new adapter.NodeAnswer(response, shared)
    const request = new adapter.NodeRequest(message, response, shared, given)
    if (principal === undefined || given?.principal !== undefined) return endpoint.handle(request, answer)
    endpoint.handle(request, answer, (then) =>
      findPrincipal(principal, context, message, answer, (found) => {
        request.principal = found
        then()
      }))
  }
  return { handler, endpoint, shared }
}

/**
 * A handler for a `node:http` server of your own, or for a framework on top of one. What is in flight is ended with the scope.
 *
 * Mount it for every method on its path; the path that it checks is the one that the client asked for, so that a router may cut it.
 */
export const handler = (options: HandlerOptions = {}): Effect.Effect<Handler, never, McpServer | Scope.Scope> =>
  Effect.gen(function*() {
    const endpoint = yield* Http.make(options)
    const context = yield* adapterContext
    const made = prepare(endpoint, options, context, false)
    yield* Effect.addFinalizer(() => Effect.sync(() => void (made.shared.closing = true)))
    return made.handler
  })

/** Listens until the scope closes. Fails with `TransportError` `Open` where it cannot: the port is taken, for instance. */
export const serve = (
  options: Options = {}
): Effect.Effect<Server["Service"], TransportError, McpServer | Scope.Scope> =>
  Effect.gen(function*() {
    const host = options.host ?? "127.0.0.1"
    const own = loopback.includes(host) || server.isWildcard(host) ? [] : [host.includes(":") ? `[${host}]` : host]
    const scope = yield* Effect.scope
    // Closed by the listener's own finalizer, between its two steps.
    const inner = yield* Scope.fork(scope)
    const endpoint = yield* Scope.provide(
      Http.make({ ...options, allowedHosts: options.allowedHosts ?? [...loopback, ...own] }),
      inner
    )
    const context = yield* adapterContext
    const { handler, shared } = prepare(endpoint, options, context, true)
    const listener = server.make(handler, {
      headersTimeout: Duration.toMillis(options.headersTimeout ?? 15_000),
      requestTimeout: Duration.toMillis(options.requestTimeout ?? 60_000),
      keepAliveTimeout: Duration.toMillis(options.keepAliveTimeout ?? 65_000),
      maxConnections: options.maxConnections ?? 20_000
    })
    const address = yield* Effect.acquireRelease(
      server.listen(listener.server, options.port ?? 3000, host),
      () =>
        Effect.suspend(() => {
          shared.closing = true
          return server.close(listener.server, listener.sockets, Scope.close(inner, Exit.void))
        })
    )
    const url = server.urlOf(address, options.path ?? "/mcp")
    return Server.of({ host: address.address, port: address.port, url, endpoint })
  })

/**
 * Listens in the background, until the layer's scope closes: then it accepts nothing more, lets what is in flight finish within the
 * grace, ends the streams, and closes the connections.
 */
export const layer = (options?: Options): Layer.Layer<Server, TransportError, McpServer> =>
  Layer.effect(Server, serve(options))

/** How a server listens, and what bounds it and its process. */
export interface MainOptions extends Options {
  /** What is done once it listens, instead of telling the log where. It is interrupted when the process ends. */
  readonly onListening?: ((listening: Server["Service"]) => Effect.Effect<unknown, never, McpServer>) | undefined
}

const announce = ({ url }: Server["Service"]): Effect.Effect<void> => Effect.logInfo(`Listening on ${url}`)

/**
 * Serves HTTP as the whole life of this process. The log, on stderr, tells where.
 *
 * - SIGTERM or SIGINT: nothing more is accepted, what is in flight may finish within `grace` (5 seconds), exit 143 or 130. A second
 *   signal exits at once.
 * - The server cannot be built, or cannot listen: the cause goes to stderr, exit 1.
 */
export const runMain = <E>(mcp: Layer.Layer<McpServer, E>, options: MainOptions = {}): void => {
  const { onListening = announce, ...rest } = options
  const life = Effect.scoped(Effect.flatMap(serve(rest), (at) => Effect.andThen(onListening(at), Effect.never)))
  // What is in flight has the grace, and the finalizers of the server have some time of their own.
  main.runMain(Effect.provide(life, mcp), {
    shutdownTimeout: Duration.toMillis(options.shutdownTimeout ?? 5_000) + 5_000
  })
}

/** A server inside of a host that is not written in Effect. */
export interface Mounted {
  readonly handler: Handler
  /** Ends what is in flight, and the server. */
  readonly close: () => Promise<void>
}

/** Builds a server and its handler, for a host that is not written in Effect: it closes it when it ends. */
export const mount = <E>(mcp: Layer.Layer<McpServer, E>, options?: HandlerOptions): Promise<Mounted> =>
  Effect.runPromise(Effect.gen(function*() {
    const scope = yield* Scope.make()
    const build = Effect.flatMap(Layer.build(mcp), (context) => Effect.provideContext(handler(options), context))
    const made = yield* Effect.onError(
      Scope.provide(build, scope),
      (cause) => Scope.close(scope, Exit.failCause(cause))
    )
    return { handler: made, close: () => Effect.runPromise(Scope.close(scope, Exit.void)) }
  }))
