/** The adapters behind the HTTP servers that users run them on, for tests that write the bytes of HTTP themselves. */
import { serve as serveHono } from "@hono/node-server"
import type * as Http from "@skein/server/Http"
import * as HttpRoutes from "@skein/server/HttpRoutes"
import * as NodeHttp from "@skein/server/NodeHttp"
import * as WebHttp from "@skein/server/WebHttp"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import express from "express"
import fastify from "fastify"
import { createServer, type Server as NodeServer } from "node:http"
import type { AddressInfo } from "node:net"
import { adapters, application, type Port, type Server } from "../adapters.ts"

export type HostName = "NodeHttp" | "node:http" | "Express" | "Fastify" | "Hono" | "HttpRouter"

/** An HTTP server with an adapter in it. */
export interface Host {
  readonly name: HostName
  readonly serve: (server: Server, options?: Http.Options) => Effect.Effect<Port, never, Scope.Scope>
}

const build = <A, E>(
  server: Server,
  made: Effect.Effect<A, E, Scope.Scope | Layer.Success<Server>>
): Effect.Effect<A, never, Scope.Scope> =>
  Effect.orDie(Effect.flatMap(Layer.build(server), (context) => Effect.provideContext(made, context)))

const portOf = (server: NodeServer): Port => ({ port: (server.address() as AddressInfo).port })

/** Listens until the scope closes. */
const listening = (make: () => NodeServer): Effect.Effect<Port, never, Scope.Scope> =>
  Effect.map(
    Effect.acquireRelease(
      Effect.callback<NodeServer>((resume) => {
        const server = make()
        if (server.listening) resume(Effect.succeed(server))
        else server.once("listening", () => resume(Effect.succeed(server)))
      }),
      (server) =>
        Effect.sync(() => {
          server.close()
          server.closeAllConnections()
        })
    ),
    portOf
  )

const plain: Host = {
  name: "node:http",
  serve: (server, options) =>
    Effect.flatMap(
      build(server, NodeHttp.handler(options)),
      (handler) =>
        listening(() => createServer((request, response) => handler(request, response)).listen(0, "127.0.0.1"))
    )
}

const expressHost: Host = {
  name: "Express",
  serve: (server, options) =>
    Effect.flatMap(
      build(server, NodeHttp.handler(options)),
      (handler) =>
        listening(() => {
          const app = express()
          app.all("/*path", handler)
          return app.listen(0, "127.0.0.1")
        })
    )
}

const fastifyHost: Host = {
  name: "Fastify",
  serve: (server, options) =>
    Effect.flatMap(build(server, NodeHttp.handler(options)), (handler) =>
      Effect.map(
        Effect.acquireRelease(
          Effect.promise(async () => {
            const app = fastify({ forceCloseConnections: true })
            app.all("/*", (request, reply) => {
              reply.hijack()
              handler(request.raw, reply.raw, { body: request.body })
            })
            await app.listen({ port: 0, host: "127.0.0.1" })
            return app
          }),
          (app) => Effect.promise(async () => app.close())
        ),
        (app) => portOf(app.server)
      ))
}

const hono: Host = {
  name: "Hono",
  serve: (server, options) =>
    Effect.flatMap(
      build(server, WebHttp.handler(options)),
      (handler) =>
        listening(() =>
          serveHono({ fetch: (request) => handler(request), port: 0, hostname: "127.0.0.1" }) as NodeServer
        )
    )
}

const router: Host = {
  name: "HttpRouter",
  serve: (server, options) => {
    const { path: _, ...rest } = options ?? {}
    // Effect's server does not read a socket after an upgrade that no route accepts, and so does not see that it ended.
    return application(HttpRoutes.layer(rest).pipe(Layer.provide(server)), HttpRoutes.serve, {
      gracefulShutdownTimeout: 100
    })
  }
}

const [own] = adapters

export const hosts: ReadonlyArray<Host> = [
  { name: "NodeHttp", serve: own!.serve },
  plain,
  expressHost,
  fastifyHost,
  hono,
  router
]
