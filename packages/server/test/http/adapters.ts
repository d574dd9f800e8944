/** The three adapters of one endpoint, each on a free port, so that the same tests can run against all of them. */
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import type * as Catalog from "@skein/server/Catalog"
import type * as Http from "@skein/server/Http"
import * as HttpRoutes from "@skein/server/HttpRoutes"
import type * as McpServer from "@skein/server/McpServer"
import * as NodeHttp from "@skein/server/NodeHttp"
import * as WebHttp from "@skein/server/WebHttp"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as HttpServer from "effect/http/HttpServer"
import { HttpServerRequest } from "effect/http/HttpServerRequest"
import * as HttpRouter from "effect/http/HttpRouter"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import { type AddressInfo } from "node:net"
import { Readable } from "node:stream"

export type Server = Layer.Layer<McpServer.McpServer | Catalog.Catalog, unknown>

/** The address of a server behind an adapter. */
export interface Port {
  readonly port: number
}

/** An adapter that serves an endpoint. */
export interface Adapter {
  readonly name: string
  /** Serves until the scope closes. The principal is the value of the `x-user` header. */
  readonly serve: (server: Server, options?: Http.Options) => Effect.Effect<Port, never, Scope.Scope>
}

/** Converts a request of a `node:http` server to a `Request`, whose signal aborts when the client disconnects. */
const requestOf = (message: IncomingMessage, disconnected: AbortSignal): Request => {
  const headers = new Headers()
  // `headersDistinct` of Node 24 is empty now and then, in a process that has handled many requests.
  const { rawHeaders } = message
  for (let at = 0; at < rawHeaders.length; at += 2) headers.append(rawHeaders[at]!, rawHeaders[at + 1]!)
  const bodiless = message.method === "GET" || message.method === "HEAD"
  return new Request(`http://${message.headers.host}${message.url}`, {
    method: message.method!,
    headers,
    signal: disconnected,
    ...(bodiless ? undefined : { body: Readable.toWeb(message) as ReadableStream, duplex: "half" as const })
  })
}

const drained = (response: ServerResponse): Promise<void> =>
  new Promise((resolve) => {
    const done = (): void => {
      response.off("drain", done)
      response.off("close", done)
      resolve()
    }
    response.on("drain", done)
    response.on("close", done)
  })

const answer = async (response: ServerResponse, web: Response): Promise<void> => {
  response.writeHead(web.status, Object.fromEntries(web.headers))
  if (web.body === null) return void response.end()
  response.flushHeaders()
  const reader = web.body.getReader()
  response.once("close", () => void reader.cancel().catch(() => {}))
  try {
    for (let next = await reader.read(); !next.done; next = await reader.read()) {
      if (!response.write(next.value) && !response.destroyed) await drained(response)
    }
    response.end()
  } catch {
    response.destroy()
  }
}

/** Serves web-standard handlers on `node:http`, as the adapters of frameworks do. */
export const bridge = (handle: (request: Request) => Promise<Response>): Effect.Effect<Port, never, Scope.Scope> =>
  Effect.map(
    Effect.acquireRelease(
      Effect.callback<ReturnType<typeof createServer>>((resume) => {
        const server = createServer((message, response) => {
          const disconnected = new AbortController()
          response.once("close", () => response.writableEnded || disconnected.abort())
          void handle(requestOf(message, disconnected.signal)).then((web) => answer(response, web))
        })
        server.listen(0, "127.0.0.1", () => resume(Effect.succeed(server)))
      }),
      (server) => Effect.callback<void>((resume) => void server.close(() => resume(Effect.void)))
    ),
    (server) => ({ port: (server.address() as AddressInfo).port })
  )

const userOf = (name: string | null | undefined) => name == null ? undefined : { id: name }

const node: Adapter = {
  name: "node:http",
  serve: (server, options) =>
    Effect.map(
      Effect.orDie(Layer.build(Layer.provide(
        NodeHttp.layer({ ...options, port: 0, principal: ({ headers }) => userOf(headers["x-user"] as string) }),
        server
      ))),
      (context) => Context.get(context, NodeHttp.Server)
    )
}

const web: Adapter = {
  name: "web",
  serve: (server, options) =>
    Effect.gen(function*() {
      const context = yield* Effect.orDie(Layer.build(server))
      // The port stays open until the requests in flight have ended, as in an application.
      let handle: WebHttp.Handler | undefined = undefined as WebHttp.Handler | undefined
      const port = yield* bridge((request) => handle!(request))
      handle = yield* Effect.provideContext(
        WebHttp.handler({ ...options, principal: ({ headers }) => userOf(headers.get("x-user")) }),
        context
      )
      return port
    })
}

const authenticated = HttpRouter.middleware(Effect.succeed((route) =>
  Effect.flatMap(
    HttpServerRequest,
    ({ headers }) => Effect.provideService(route, HttpRoutes.CurrentPrincipal, userOf(headers["x-user"]))
  )
))

/** Serves an application of Effect's router on a free port. */
export const application = <E>(
  app: Layer.Layer<never, E, HttpRouter.HttpRouter>,
  serve: typeof HttpRoutes.serve = HttpRoutes.serve,
  options?: { readonly gracefulShutdownTimeout: number }
): Effect.Effect<Port, never, Scope.Scope> => {
  const served = serve(app, { disableLogger: true, disableListenLog: true }).pipe(
    Layer.provideMerge(NodeHttpServer.layer(createServer, { ...options, port: 0, host: "127.0.0.1" }))
  )
  return Effect.map(Effect.orDie(Layer.build(served)), (context) => {
    const { address } = Context.get(context, HttpServer.HttpServer)
    return { port: (address as { readonly port: number }).port }
  })
}

const router: Adapter = {
  name: "HttpRouter",
  serve: (server, options) => {
    const { path: _, ...rest } = options ?? {}
    return application(HttpRoutes.layer(rest).pipe(Layer.provide([server, authenticated.layer])))
  }
}

export const adapters: ReadonlyArray<Adapter> = [node, web, router]
