/**
 * A server: its definitions, behind one dispatcher that serves all five revisions.
 *
 * @example
 * const Server = McpServer.layer({ name: "hello", version: "1.0.0" }, Tool.layer(greet, greeting))
 */
import type * as Common from "@skein/protocol/Common"
import * as Revision from "@skein/protocol/Revision"
import type { Connection } from "@skein/runtime/Connection"
import * as Inspect from "@skein/runtime/Inspect"
import type { Limits } from "@skein/runtime/Limits"
import * as Peer from "@skein/runtime/Peer"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import * as Catalog from "./Catalog.ts"
import * as dispatcher from "./internal/dispatcher.ts"
import { Host } from "./internal/host.ts"
import { Hub } from "./internal/hub.ts"
import * as identity from "./internal/identity.ts"

/** What a server is, and its bounds. */
export interface Options {
  /** A name for programs. */
  readonly name: string
  readonly version: string
  /** A name for people. */
  readonly title?: string
  readonly description?: string
  readonly websiteUrl?: string
  readonly icons?: ReadonlyArray<Common.Icon>
  /** How to use the server, for a language model. */
  readonly instructions?: string
  /** The revisions that it speaks; all by default. */
  readonly revisions?: ReadonlyArray<Revision.Revision>
  /** How many entries a page of a listing holds: 1,000 by default, 1 at least. What is beyond comes with `nextCursor`. */
  readonly pageSize?: number
  /** The bounds of each connection. */
  readonly limits?: Limits
}

/** A server that can be put on connections. */
export class McpServer extends Context.Service<McpServer, {
  readonly options: Options
  /**
   * Serves a connection, each message in the era that it is written in, until the scope closes or the connection ends. Give
   * each connection a scope of its own: it is listed by `inspect` until that closes.
   *
   * `Link.transport(server.serve)` is the transport of a client in the same process.
   */
  readonly serve: (connection: Connection) => Effect.Effect<Peer.Peer, never, Scope.Scope>
  /** The server, its connections and what runs on them, now. */
  readonly inspect: Effect.Effect<Inspect.ServerInfo>
  /** The inside of the server, for its transports. */
  readonly host: Host
}>()("@skein/server/McpServer") {}

/** Definitions, as `Tool.layer` and its kin make them. */
export type Definitions = Layer.Layer<never, unknown, unknown>

/**
 * A server with its definitions. More of them may be layered on top, since the layer provides its `Catalog` too. What the
 * definitions need besides, the layer needs; a layer that several of them are provided with is built once for the server.
 *
 * Fails with what the definitions fail with: a `DefinitionError` for a name that is taken twice, for instance.
 */
export const layer = <const L extends ReadonlyArray<Definitions>>(
  options: Options,
  ...definitions: L
): Layer.Layer<
  McpServer | Catalog.Catalog,
  Layer.Error<L[number]>,
  Exclude<Layer.Services<L[number]>, Catalog.Catalog>
> =>
  Layer.effectContext(Effect.gen(function*() {
    const context = yield* Effect.context<Scope.Scope>()
    const scope = Context.get(context, Scope.Scope)
    // What belongs to the building of this layer is nothing that a request may find: a scope that it finds, it would fill.
    const base: Context.Context<never> = Context.omit(Scope.Scope, Layer.CurrentMemoMap)(context)
    const catalog = Catalog.make(base)
    const provided = Context.make(Catalog.Catalog, catalog)
    // Its own, so that a second server with the same definitions offers them too.
    const memo = Layer.CurrentMemoMap.forkOrCreate(context)
    for (const definition of definitions) {
      yield* Layer.buildWithMemoMap(Layer.provide(definition, Layer.succeedContext(provided)), memo, scope)
    }
    return Context.add(provided, McpServer, make(options, catalog))
  })) as never

const make = (options: Options, catalog: Catalog.Catalog["Service"]): McpServer["Service"] => {
  const revisions = (options.revisions ?? Revision.all).toSorted().toReversed()
  const { instructions, limits, name, version } = options
  const pageSize = Math.max(1, Math.floor(options.pageSize ?? 1000))
  const hub = new Hub()
  const dispatch = dispatcher.make({ serverInfo: describe(options), instructions, revisions, pageSize }, catalog, hub)
  const host = new Host(catalog, hub, dispatch, identity.make(revisions), limits)
  const serve = (connection: Connection): Effect.Effect<Peer.Peer, never, Scope.Scope> =>
    Effect.acquireRelease(
      Effect.tap(Peer.make(host.options(connection)), (peer) => Effect.sync(() => hub.peers.add(peer))),
      (peer) => Effect.sync(() => host.forget(peer))
    )
  return McpServer.of({
    options,
    // Every request starts with the services that the server was built with, whoever serves the connection.
    serve: (connection) =>
      Effect.updateContext(
        serve(connection),
        (current: Context.Context<Scope.Scope>) => Context.merge(current, catalog.base)
      ),
    inspect: Inspect.server({ name, version, peers: hub.peers }),
    host
  })
}

const describe = ({ name, version, title, description, websiteUrl, icons }: Options): Common.Implementation => ({
  name,
  version,
  ...(title === undefined ? undefined : { title }),
  ...(description === undefined ? undefined : { description }),
  ...(websiteUrl === undefined ? undefined : { websiteUrl }),
  ...(icons === undefined ? undefined : { icons })
})
