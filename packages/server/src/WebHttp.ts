/**
 * A server as a web-standard handler, from `Request` to `Response`: for Hono, Next.js, Workers, Bun, Deno and whatever else speaks
 * that. It imports nothing of any platform.
 *
 * It serves this machine alone until it is told its names: `allowedHosts: ["mcp.example.com"]`, and the `allowedOrigins` of the web
 * pages that may use it.
 *
 * Where each request may meet another process (functions, Workers), only the request era works, which needs no memory. Workers also
 * cut an answer that waits for nothing of its own, as an idle subscription does, and tell that a client left with the next write
 * only; sessions and subscriptions want a Durable Object around the handler there.
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
import { adapterContext, type FindPrincipal, findPrincipal } from "./internal/http/adapters/principal.ts"
import * as adapter from "./internal/http/adapters/web.ts"
import type { McpServer } from "./McpServer.ts"

/** What a host has found out about a request before it gave it away. */
export interface RequestInput extends adapter.RequestInput {}

/** How requests are taken over from a host. */
export interface Options extends Http.Options {
  /**
   * Who makes a request, where the handler is not told with it: it is asked once Host, Origin and path have passed. What it fails with or
   * throws is logged, and the request answered with 500. It is interrupted when the client leaves.
   */
  readonly principal?: FindPrincipal<Request> | undefined
}

/**
 * Answers a request. The second argument tells what is known of it: `handler(request, { principal })`. What a framework passes
 * there of its own does no harm, as long as it has no such members: `{ params }` of Next.js. The promise does not fail.
 */
export type Handler = (request: Request, given?: RequestInput) => Promise<Response>

/**
 * A handler for the requests of a host. What is in flight is ended with the scope: subscriptions get their result, what runs may
 * finish within the grace.
 */
export const handler = (options: Options = {}): Effect.Effect<Handler, never, McpServer | Scope.Scope> =>
  Effect.gen(function*() {
    const endpoint = yield* Http.make(options)
    const context = yield* adapterContext
    const { principal } = options
    return (message, given) =>
      new Promise((settle) => {
        const answer = new adapter.WebAnswer(message, settle)
        const request = new adapter.WebRequest(message, answer, given)
        if (principal === undefined || given?.principal !== undefined) return endpoint.handle(request, answer)
        endpoint.handle(request, answer, (then) =>
          findPrincipal(principal, context, message, answer, (found) => {
            request.principal = found
            then()
          }))
      })
  })

/** A server inside of a host that is not written in Effect. */
export interface Mounted {
  readonly handler: Handler
  /** Ends what is in flight, and the server. */
  readonly close: () => Promise<void>
}

/**
 * A server and its handler, for a host that is not written in Effect. It is built with the first request, since some platforms
 * forbid to do anything before that. Where that fails, the promise of the request fails, and the next request tries again.
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
  const first: Handler = async (request, given) => (await (building ??= build()))(request, given)
  return {
    handler: (request, given) => (built ?? first)(request, given),
    close: async () => {
      await building?.catch(() => {})
      await Effect.runPromise(Scope.close(scope, Exit.void))
      built ??= () => Promise.resolve(new Response(null, { status: 503 }))
    }
  }
}
