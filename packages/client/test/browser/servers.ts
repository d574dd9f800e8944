/** The servers for a page. Each has its own port, and therefore its own origin. */
import * as Catalog from "@skein/server/Catalog"
import * as Cors from "@skein/server/Cors"
import * as Elicitation from "@skein/server/Elicitation"
import * as McpServer from "@skein/server/McpServer"
import * as NodeHttp from "@skein/server/NodeHttp"
import * as Polling from "@skein/server/Polling"
import * as ServerProgress from "@skein/server/Progress"
import * as Roots from "@skein/server/Roots"
import * as Sampling from "@skein/server/Sampling"
import * as Tool from "@skein/server/Tool"
import type * as JsonRpc from "@skein/protocol/JsonRpc"
import * as Revision from "@skein/protocol/Revision"
import * as RawServer from "@skein/testing/RawServer"
import * as ScriptedHttpServer from "@skein/testing/ScriptedHttpServer"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import { subscribe, unsubscribe } from "node:diagnostics_channel"
import type { IncomingMessage } from "node:http"
import type { Socket } from "node:net"
import { answer, type Json } from "../http/support/connection.ts"
import type { Servers } from "./program.ts"

const { accepted, form } = Elicitation

/** One `Deferred` for each key of a call. */
const marks = () => {
  const made = new Map<string, Deferred.Deferred<void>>()
  return (key: string): Deferred.Deferred<void> => {
    const mark = made.get(key) ?? Deferred.makeUnsafe<void>()
    made.set(key, mark)
    return mark
  }
}

const about = { key: Schema.String }

/** The HTTP methods that servers of this process receive from now on, and their open connections. */
class Traffic {
  readonly verbs: Array<string> = []
  readonly #sockets = new Set<Socket>()

  received(verb: string, socket: Socket): void {
    this.verbs.push(verb)
    if (this.#sockets.has(socket)) return
    this.#sockets.add(socket)
    socket.once("close", () => this.#sockets.delete(socket))
  }

  /** Destroys every connection. */
  cut(): void {
    for (const socket of this.#sockets) socket.destroy()
  }
}

const traffic = Effect.acquireRelease(
  Effect.sync(() => {
    const traffic = new Traffic()
    const listener = (message: unknown) => {
      const { request, socket } = message as { readonly request: IncomingMessage; readonly socket: Socket }
      traffic.received(request.method!, socket)
    }
    subscribe("http.server.request.start", listener)
    return { traffic, listener }
  }),
  ({ listener }) => Effect.sync(() => void unsubscribe("http.server.request.start", listener))
)

/** A server of these revisions, with a tool that breaks its connections. */
const server = (name: string, revisions: ReadonlyArray<Revision.Revision>, cut: () => void) => {
  const begun = marks()
  const cancelled = marks()
  const tools = Layer.mergeAll(
    Tool.layer(
      Tool.make("mirrored", {
        input: {
          region: Schema.String.annotate({ "x-mcp-header": "Region" }),
          count: Schema.Int.annotate({ "x-mcp-header": "Count" })
        }
      }),
      ({ count, region }) => Effect.succeed(`${region} ${count}`)
    ),
    Tool.layer(Tool.make("steps"), () =>
      Effect.as(
        Effect.andThen(
          ServerProgress.report({ progress: 1, total: 2 }),
          Effect.andThen(Effect.sleep(5), ServerProgress.report({ progress: 2, total: 2 }))
        ),
        "done"
      )),
    Tool.layer(Tool.make("ask"), () =>
      Effect.gen(function*() {
        const { name } = yield* accepted(form("What is your name?", { name: Schema.String }))
        const model = yield* Sampling.createMessage({ messages: "A poem, please", maxTokens: 10 })
        const roots = yield* Roots.list()
        return `${name}, ${Sampling.text(model)}, ${roots.map(({ uri }) => uri).join()}`
      })),
    Tool.layer(Tool.make("hang", { input: about }), ({ key }) =>
      Effect.onInterrupt(
        Effect.andThen(Deferred.succeed(begun(key), undefined), Effect.never),
        () => Deferred.succeed(cancelled(key), undefined)
      )),
    Tool.layer(
      Tool.make("begun", { input: about }),
      ({ key }) => Effect.as(Deferred.await(begun(key)), "it has begun")
    ),
    Tool.layer(
      Tool.make("cancelled", { input: about }),
      ({ key }) => Effect.as(Deferred.await(cancelled(key)), "it was cancelled")
    ),
    Tool.layer(Tool.make("change"), () =>
      Effect.as(
        Effect.andThen(Catalog.setEnabled("tool", "extra", false), Catalog.setEnabled("tool", "extra", true)),
        "changed"
      )),
    Tool.layer(Tool.make("extra"), () => Effect.succeed("extra")),
    Tool.layer(
      Tool.make("resume"),
      () => Effect.as(Effect.andThen(Polling.disconnect("20 millis"), Effect.sleep("40 millis")), "you came back")
    ),
    Tool.layer(Tool.make("cut"), () =>
      // Progress makes the server open a stream, which the cut then breaks.
      Effect.as(
        Effect.andThen(
          ServerProgress.report({ progress: 1 }),
          Effect.andThen(Effect.sleep(30), Effect.andThen(Effect.sync(cut), Effect.sleep(30)))
        ),
        "nothing is lost"
      ))
  )
  const caching = { "tools/list": { ttlMs: 60_000, cacheScope: "public" } } as const
  return McpServer.layer({ name, version: "1.0.0", revisions, caching }, tools)
}

const sessions: ReadonlyArray<Revision.Revision> = ["2025-11-25", "2025-06-18", "2025-03-26"]

const serve = (layer: ReturnType<typeof server>, options: NodeHttp.Options) =>
  Effect.map(
    Layer.build(Layer.provide(NodeHttp.layer({ port: 0, ...options }), layer)),
    (context) => Context.get(context, NodeHttp.Server)
  )

/** A URL without a server: its port was free a moment ago. */
const nobody = Effect.scoped(Effect.map(RawServer.http(() => {}), ({ url }) => url.href))

/**
 * Starts all servers until the scope closes. Returns the endpoints of two of them, and the HTTP methods of all
 * requests.
 */
export const open = Effect.gen(function*() {
  const { traffic: seen } = yield* traffic
  const cut = () => seen.cut()
  const cors = Cors.make()
  const modern = yield* serve(server("modern", Revision.all, cut), { cors })
  const session = yield* serve(server("session", sessions, cut), { cors })
  const foreign = yield* serve(server("foreign", Revision.all, cut), {
    cors,
    allowedOrigins: ["https://app.example.com"]
  })
  const unreadable = yield* serve(server("unreadable", Revision.all, cut), {})
  const moved = yield* RawServer.http((request, response) => {
    const { origin = "" } = request.headers
    const allowed = request.headers["access-control-request-headers"] ?? ""
    response.writeHead(request.method === "OPTIONS" ? 204 : 307, {
      "access-control-allow-origin": origin,
      "access-control-allow-headers": allowed,
      location: modern.url
    }).end()
  })
  return {
    endpoints: { modern: modern.endpoint, session: session.endpoint },
    verbs: seen.verbs,
    servers: {
      modern: modern.url,
      session: session.url,
      foreign: foreign.url,
      unreadable: unreadable.url,
      moved: moved.url.href,
      nobody: yield* nobody
    } satisfies Servers
  }
})

/**
 * A server whose standalone stream sends nothing, not even headers, and whose stream of a call breaks and can be
 * resumed.
 */
export const silent: Effect.Effect<ScriptedHttpServer.ScriptedHttpServer<Json>, never, Scope.Scope> = Effect.suspend(
  () => {
    let asked: JsonRpc.Id = 0
    return ScriptedHttpServer.make<Json>((hit) => {
      const { headers, method, response } = hit
      const allowed = headers["access-control-request-headers"] ?? ""
      response.setHeader("access-control-allow-origin", headers.origin ?? "")
      response.setHeader("access-control-allow-headers", allowed)
      response.setHeader("access-control-allow-methods", "GET, POST, DELETE")
      response.setHeader("access-control-expose-headers", "mcp-session-id")
      if (method === "OPTIONS") return hit.respond(204)
      if (method === "GET" && headers["last-event-id"] === "1") {
        return hit.openStream(ScriptedHttpServer.event(answer(asked, { content: [{ type: "text", text: "resumed" }] })))
          .end()
      }
      const standaloneStream = () => {}
      return ScriptedHttpServer.session<Json>(() => {
        asked = hit.json.id
        hit.openStream("id: 1\nretry: 10\ndata:\n\n").end()
      }, { standaloneStream })(hit)
    })
  }
)
