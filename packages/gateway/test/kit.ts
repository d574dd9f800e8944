/** A remote server, a server with a proxy of it, and clients of that server, all in this process. */
import * as Client from "@skein/client/Client"
import type { ClientError } from "@skein/client/ClientError"
import * as Elicitation from "@skein/client/Elicitation"
import * as Roots from "@skein/client/Roots"
import * as Sampling from "@skein/client/Sampling"
import * as Proxy from "@skein/gateway/Proxy"
import type * as Revision from "@skein/protocol/Revision"
import * as InMemoryTransport from "@skein/runtime/InMemoryTransport"
import * as McpServer from "@skein/server/McpServer"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"

export const revisions = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"] as const

/** One revision of each lifecycle. */
export const eras = ["2025-11-25", "2026-07-28"] as const

/** All pairs of a caller's revision and a remote server's. */
export const pairs = <R extends string>(all: ReadonlyArray<R>): ReadonlyArray<readonly [front: R, behind: R]> =>
  all.flatMap((front) => all.map((behind) => [front, behind] as const))

/** A running server. */
export interface Running {
  readonly server: McpServer.McpServer["Service"]
  readonly context: Context.Context<never>
}

/** Builds a server in the scope. */
export const build = <E>(
  layer: Layer.Layer<McpServer.McpServer, E, never>
): Effect.Effect<Running, E, Scope.Scope> =>
  Effect.map(Layer.build(layer), (context) => ({
    server: Context.get(context, McpServer.McpServer),
    context: context as Context.Context<never>
  }))

/** The effect that makes a client of a server, as the source of a proxy. */
export const source = (
  { server }: Running,
  revision: Revision.Revision,
  options: Client.Options = {}
): Proxy.Source<Scope.Scope> =>
  Client.make(InMemoryTransport.transport(server.serve), { label: "behind", ...options, revisions: [revision] })

/** A remote server that can be stopped and started. */
export class Outage {
  isDown = false
  #scopes = new Set<Scope.Closeable>()
  readonly #running: () => Running

  constructor(running: () => Running) {
    this.#running = running
  }

  /** The number of open connections. */
  get size(): number {
    return this.#scopes.size
  }

  /** Makes a client, or fails while the server is down. */
  source(revision: Revision.Revision, options: Client.Options = {}): Proxy.Source<Scope.Scope> {
    return Effect.suspend(() => {
      const serve: McpServer.McpServer["Service"]["serve"] = (connection) =>
        Effect.gen({ self: this }, function*() {
          const scope = yield* Scope.make()
          this.#scopes.add(scope)
          yield* Effect.addFinalizer(() => {
            this.#scopes.delete(scope)
            return Scope.close(scope, Exit.void)
          })
          const peer = yield* Scope.provide(this.#running().server.serve(connection), scope)
          if (this.isDown) yield* Scope.close(scope, Exit.void)
          return peer
        })
      return Client.make(InMemoryTransport.transport(serve), { ...options, revisions: [revision], reconnect: false })
    })
  }

  /** Closes all connections, and those that are opened from now on. */
  readonly stop: Effect.Effect<void> = Effect.suspend(() => {
    this.isDown = true
    const scopes = [...this.#scopes]
    this.#scopes.clear()
    return Effect.forEach(scopes, (scope) => Scope.close(scope, Exit.void), { discard: true })
  })

  readonly start: Effect.Effect<void> = Effect.sync(() => {
    this.isDown = false
  })
}

/** Handlers of a client that answers everything. */
export const answering = Layer.mergeAll(
  Elicitation.layer({
    // "Ada" in each field of text, and yes to everything.
    form: ({ defaults, requestedSchema: { properties } }) => {
      const texts = Object.entries(properties).map(([name, { type }]) => [name, type === "boolean" ? true : "Ada"])
      return Effect.succeed(Elicitation.accept({ ...Object.fromEntries(texts), ...defaults }))
    },
    url: () => Effect.succeed(Elicitation.consent())
  }),
  Sampling.layer(
    () => Effect.succeed({ role: "assistant", content: { type: "text", text: "Tea" }, model: "test" } as const),
    {
      tools: true,
      context: true
    }
  ),
  Roots.layer([{ uri: "file:///home/ada", name: "Ada" }])
)

/** Connects a client to a server. */
export const connect = (
  { server }: Running,
  revision: Revision.Revision,
  options: Client.Options & { readonly principal?: string | undefined } = {},
  handlers: Layer.Layer<never, unknown> = Layer.empty
): Effect.Effect<Client.Client, ClientError, Scope.Scope> =>
  Effect.gen(function*() {
    const { principal, ...rest } = options
    const transport = InMemoryTransport.transport(
      server.serve,
      principal === undefined ? {} : { principal: { id: principal } }
    )
    const services = yield* Effect.orDie(Layer.build(handlers))
    return yield* Effect.updateContext(
      Client.make(transport, { cache: false, ...rest, revisions: [revision] }),
      (context: Context.Context<Scope.Scope>) => Context.merge(context, services)
    )
  })

/** Builds a remote server and a server with a proxy of it. */
export const through = (
  remote: Layer.Layer<McpServer.McpServer, unknown, never>,
  behind: Revision.Revision,
  options: Proxy.Options = {},
  clientOptions: Client.Options = {}
): Effect.Effect<{ readonly far: Running; readonly near: Running }, never, Scope.Scope> =>
  Effect.orDie(Effect.gen(function*() {
    const far = yield* build(remote)
    const near = yield* build(
      McpServer.layer({ name: "near", version: "1.0.0" }, Proxy.layer(source(far, behind, clientOptions), options))
    )
    return { far, near }
  }))
