/**
 * A server as a web-standard handler, from `Request` to `Response`: for Hono, Next.js, Workers, Bun, Deno and other
 * platforms. It imports no platform modules.
 *
 * By default it serves requests to this machine only. Set the names of the server with `allowedHosts:
 * ["mcp.example.com"]`, and the web pages that may use it with `allowedOrigins`.
 *
 * On platforms where each request may reach another process (functions, Workers), only the stateless revision works,
 * because it stores nothing between requests. Workers also end an answer that does no work, such as an idle
 * subscription, and report a disconnected client at the next write only. On Workers, put the handler into a Durable
 * Object for sessions and subscriptions.
 *
 * @example
 * const Server = McpServer.layer({ name: "hello", version: "1.0.0" }, tools)
 * const { handler } = WebHttp.mount(Server, { allowedHosts: ["mcp.example.com"] })
 *
 * // Hono
 * app.all("/mcp", (c) => handler(c.req.raw))
 * // Next.js, app/mcp/route.ts
 * export const GET = handler, POST = handler, DELETE = handler, OPTIONS = handler
 * // Workers, Bun
 * export default { fetch: (request: Request) => handler(request) }
 * // Deno
 * Deno.serve((request) => handler(request))
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import * as Http from "./Http.ts"
import * as adapter from "./internal/http/adapters/web.ts"
import type { RequestInput } from "./internal/http/adapters/web.ts"
import type { McpServer } from "./McpServer.ts"

export type { RequestInput } from "./internal/http/adapters/web.ts"

/** Options of a handler. */
export interface Options extends Http.Options {
  /**
   * Resolves the principal of a request that the handler receives without one. It runs after the checks of Host, Origin
   * and path. It returns the principal, or `undefined` for an anonymous caller: a value, a promise or an effect. It refuses
   * a request with `Http.Refusal`: by throwing it, rejecting or failing with it. Any other error, and a value that is not a
   * principal, is logged, and the request is answered with 500. An effect is interrupted when the client disconnects. The
   * option `protection` is asked for the principal that it does not find.
   */
  readonly principal?: Http.FindPrincipal<Request> | undefined
}

/**
 * Handles a request. The optional second argument has the principal, the parsed body and the services of the request:
 * `handler(request, { principal })`. Objects that frameworks pass there, such as the `{ params }` of Next.js, are
 * ignored unless they have these members. The promise does not reject.
 */
export type Handler = (request: Request, input?: RequestInput) => Promise<Response>

/**
 * Makes a handler. Closing the scope completes subscriptions with their results, and lets requests in progress finish
 * within `shutdownTimeout`.
 *
 * @example
 * const handler = yield* WebHttp.handler({ allowedHosts: ["mcp.example.com"] })
 */
export const handler = (options: Options = {}): Effect.Effect<Handler, never, McpServer | Scope.Scope> =>
  Effect.gen(function*() {
    const endpoint = yield* Http.make(options)
    return (message, input) =>
      new Promise((settle) => {
        const answer = new adapter.WebAnswer(message, settle)
        const request = new adapter.WebRequest(message, answer, input, options.trustedProxies ?? 0)
        const { principal } = options
        const isFound = principal === undefined || request.principal !== undefined
        endpoint.handle(request, answer, isFound ? undefined : (_, answer) => principal(message, answer))
      })
  })

/** A server inside of an application without Effect. */
export interface Mounted {
  readonly handler: Handler
  /** Ends the requests in progress and the server. */
  readonly close: () => Promise<void>
}

/**
 * Makes a server and its handler, for an application without Effect. The server is built at the first request, because
 * some platforms allow no work before that. If building fails, the promise of the request rejects, and the next request
 * tries again.
 *
 * @example
 * const { handler } = WebHttp.mount(Server, { allowedHosts: ["mcp.example.com"] })
 * export default { fetch: handler }
 */
export const mount = <E>(mcp: Layer.Layer<McpServer, E>, options?: Options): Mounted => {
  const scope = Scope.makeUnsafe()
  let building: Promise<Handler> | undefined
  let built: Handler | undefined
  const build = async (): Promise<Handler> => {
    const own = Scope.forkUnsafe(scope)
    const made = Effect.flatMap(Layer.build(mcp), (context) => Effect.provideContext(handler(options), context))
    const exit = await Effect.runPromiseExit(Scope.provide(made, own))
    if (Exit.isSuccess(exit)) return built = exit.value
    building = undefined
    await Effect.runPromise(Scope.close(own, exit))
    throw Cause.squash(exit.cause)
  }
  const first: Handler = async (request, input) => (await (building ??= build()))(request, input)
  return {
    handler: (request, input) => (built ?? first)(request, input),
    close: async () => {
      await building?.catch(() => {})
      await Effect.runPromise(Scope.close(scope, Exit.void))
      built ??= () => Promise.resolve(new Response(null, { status: 503 }))
    }
  }
}
