/**
 * Servers inside of applications: handlers for `node:http`, the web's `Request` and `Response`, Express, Fastify and Hono.
 */
import * as Http from "@skein/server/Http"
import * as ServerCard from "@skein/server/ServerCard"
import * as WebHttp from "@skein/server/WebHttp"
import type { IncomingMessage, ServerResponse } from "node:http"
import type { Principal } from "../base/http.ts"
import { type AsyncServer, coreOf } from "../server/asyncServer.ts"
import { endpointOptions } from "../server/coreHttp.ts"
import type { EndpointOptions, NodeOptions } from "../server/httpOptions.ts"

/** The values that an application supplies with a request. */
export interface RequestInput {
  /** The authenticated sender. */
  readonly principal?: Principal | undefined
  /** The body, if a parser has read it: JSON, text or bytes. */
  readonly body?: unknown
}

/**
 * Handles a request of `node:http`. The optional third argument has the principal and the parsed body of the request. A function
 * there (the `next` of Express) is ignored.
 */
export type NodeHandler = (
  request: IncomingMessage,
  response: ServerResponse,
  input?: RequestInput | ((error?: unknown) => void)
) => void

/** A server inside of an application. */
export interface Mounted<Handler> {
  readonly handler: Handler
  /** Ends the requests in progress within `shutdownTimeout`, and the server. Call it before open connections are closed. */
  readonly close: () => Promise<void>
}

/**
 * Starts a server whose requests a `node:http` server of yours passes on, also one with Express. Mount the handler for all HTTP
 * methods on its path, and on the other `httpPaths`. It checks the path that the client requested. Rejects if the server cannot be
 * built.
 *
 * @example
 * const { close, handler } = await nodeHandler(server, { allowedHosts: ["mcp.example.com"] })
 * createServer(handler).listen(3000)
 */
export const nodeHandler = async (server: AsyncServer, options: NodeOptions = {}): Promise<Mounted<NodeHandler>> => {
  // The layer is made now: the server has started.
  const layer = coreOf(server).toLayer()
  const { mount } = await import("@skein/server/NodeHttp")
  return mount(layer, endpointOptions(options) as never)
}

/** Handles a request of Express. An error of the start of the server is passed to `next`. */
export interface ExpressHandler {
  (request: IncomingMessage, response: ServerResponse, next: (error?: unknown) => void): void
  /** Ends the requests in progress within `shutdownTimeout`, and the server. */
  readonly close: () => Promise<void>
}

/**
 * Makes a handler for Express. The server starts with the first request. If it cannot be built, the next request tries again.
 *
 * @example
 * const mcp = expressHandler(server, { principal: (request: express.Request) => request.user })
 * app.all("/mcp", mcp)
 */
export const expressHandler = (server: AsyncServer, options?: NodeOptions): ExpressHandler => {
  let mounting: Promise<Mounted<NodeHandler>> | undefined
  const mount = async (): Promise<Mounted<NodeHandler>> => {
    try {
      return await nodeHandler(server, options)
    } catch (error) {
      mounting = undefined
      throw error
    }
  }
  const handle = (request: IncomingMessage, response: ServerResponse, next: (error?: unknown) => void): void => {
    ;(mounting ??= mount()).then(({ handler }) => handler(request, response), next)
  }
  return Object.assign(handle, { close: async () => (await mounting)?.close() })
}

/** The members of a Fastify application that the plugin uses. */
export interface FastifyApplication {
  all(
    path: string,
    handler: (
      request: { readonly raw: IncomingMessage; readonly body: unknown },
      reply: { readonly raw: ServerResponse; hijack(): unknown }
    ) => void
  ): unknown
  addHook(name: "preClose", hook: () => Promise<void>): unknown
}

/**
 * Makes a plugin for Fastify, which answers the `httpPaths` of the options. The server starts with the application and ends with
 * it.
 *
 * @example
 * await app.register(fastifyPlugin(server, { allowedHosts: ["mcp.example.com"] }))
 */
export const fastifyPlugin =
  (server: AsyncServer, options: NodeOptions = {}) => async (app: FastifyApplication): Promise<void> => {
    const { close, handler } = await nodeHandler(server, options)
    for (const path of httpPaths(options)) {
      app.all(path, ({ body, raw }, reply) => {
        reply.hijack()
        handler(raw, reply.raw, { body })
      })
    }
    app.addHook("preClose", close)
  }

/** The options of an endpoint of web standards. */
export interface WebOptions extends EndpointOptions {
  /**
   * Finds the principal of a request. It returns `undefined` for an anonymous caller, and throws a `Refusal` to refuse the request.
   * Any other error is logged, and the answer is 500.
   */
  readonly principal?: ((request: Request) => Principal | undefined | Promise<Principal | undefined>) | undefined
}

/**
 * Handles a request. The optional second argument has its principal and parsed body. Objects that frameworks pass there, such as
 * the `{ params }` of Next.js, are ignored unless they have these members.
 */
export type WebHandler = (request: Request, input?: RequestInput) => Promise<Response>

/**
 * Makes a handler of web standards: for Next.js, Workers, Bun, Deno and other platforms. The server starts with the first request.
 * If it cannot be built, the promise of the request rejects, and the next request tries again.
 *
 * Where each request may reach another process (functions, Workers), only the stateless revision works.
 *
 * @example
 * const { handler } = webHandler(server, { allowedHosts: ["mcp.example.com"] })
 * export default { fetch: (request: Request) => handler(request) }
 */
export const webHandler = (server: AsyncServer, options: WebOptions = {}): Mounted<WebHandler> =>
  WebHttp.mount(coreOf(server).toLayer(), endpointOptions(options) as never)

/** Handles a request of Hono. */
export interface HonoHandler {
  (context: { readonly req: { readonly raw: Request } }): Promise<Response>
  /** Ends the requests in progress within `shutdownTimeout`, and the server. */
  readonly close: () => Promise<void>
}

/**
 * Makes a handler for Hono, as `webHandler` does.
 *
 * @example
 * app.all("/mcp", honoHandler(server, { allowedHosts: ["mcp.example.com"] }))
 */
export const honoHandler = (server: AsyncServer, options?: WebOptions): HonoHandler => {
  const { close, handler } = webHandler(server, options)
  return Object.assign(
    (context: { readonly req: { readonly raw: Request } }) => handler(context.req.raw),
    { close }
  )
}

/**
 * Returns the paths that an endpoint answers: its own, those of HTTP+SSE, and those of the pages of its protection and its card. A
 * router that passes single paths must pass all of these. A path that ends with `/*` stands for all paths below it.
 *
 * @example
 * const { handler } = await nodeHandler(server, options)
 * app.all(httpPaths(options), handler)
 */
export const httpPaths = (options: EndpointOptions): Array<string> => {
  const { serverCard, ...rest } = options
  return [
    ...Http.paths(endpointOptions(rest) as never),
    ...(serverCard === undefined ? [] : ServerCard.paths(serverCard))
  ]
}
