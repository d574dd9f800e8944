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
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as References from "effect/References"
import * as Scope from "effect/Scope"
import type * as Caching from "./Caching.ts"
import * as Catalog from "./Catalog.ts"
import { EventBus, type ListKind } from "./EventBus.ts"
import * as details from "./internal/definitions/validateDefinition.ts"
import * as dispatcher from "./internal/dispatch/dispatcher.ts"
import { Fibers } from "./internal/dispatch/fibers.ts"
import { Host } from "./internal/dispatch/serverCore.ts"
import { SubscriptionRegistry, type SubscriptionSettings } from "./internal/subscriptions/subscriptionRegistry.ts"
import * as identity from "./internal/dispatch/identity.ts"
import { LogForwarder, withServerServices } from "./internal/observability/logs.ts"
import type * as Logging from "./Logging.ts"
import { cacheHint } from "./internal/definitions/readResource.ts"

/** What a server is, and its bounds. */
export interface Options {
  /** A name for programs. */
  readonly name: string
  readonly version: string
  /** A name for people. */
  readonly title?: string | undefined
  readonly description?: string | undefined
  readonly websiteUrl?: string | undefined
  readonly icons?: ReadonlyArray<Common.Icon> | undefined
  /** How to use the server, for a language model. */
  readonly instructions?: string | undefined
  /** The revisions that it speaks; all by default. */
  readonly revisions?: ReadonlyArray<Revision.Revision> | undefined
  /** How many entries a page of a listing holds: 1,000 by default, 1 at least. What is beyond comes with `nextCursor`. */
  readonly pageSize?: number | undefined
  /** How long, and by whom, answers may be kept, by method; not at all by default. A resource's own hints come first. */
  readonly caching?: Caching.Methods | undefined
  /** The bounds of each connection. */
  readonly limits?: Limits | undefined
  /**
   * Kinds that it declares from the start, though nothing of them is there yet: for a server that adds them while it runs. A
   * client hears of no changes of a kind that it was not told of when it connected.
   */
  readonly declareListChanged?: ReadonlyArray<ListKind> | undefined
  /**
   * For how long changes of a list are gathered before clients are told, once for all of them: 50 ms by default. From the first
   * change on, so that one who changes something all the time delays nothing.
   */
  readonly listChangedDebounce?: Duration.Input | undefined
  /** The bounds of what clients subscribe to. */
  readonly subscriptions?: Subscriptions | undefined
  /** How handlers' logs reach the clients that ask for them. `false`: not at all, and `logging` is not declared. */
  readonly logging?: Logging.Options | false | undefined
}

/** The bounds of what clients subscribe to. */
export interface Subscriptions {
  /**
   * Resources that one session, or one `subscriptions/listen`, may watch: 1,000 by default. At the bound `resources/subscribe` is
   * refused with `-32603`; of a `subscriptions/listen` the first ones are honoured, and its acknowledgment says which.
   */
  readonly maxResources?: number | undefined
  /**
   * How many `subscriptions/listen` may be open at the server: 20,000 by default. At the bound the next one is refused with
   * `-32603`. On one connection it is one of the requests in flight besides (`Limits.maxInFlightRequests`).
   */
  readonly maxListens?: number | undefined
  /** The same for one principal: 1,000 by default. Those whom nobody has identified are not counted one by one. */
  readonly maxListensPerPrincipal?: number | undefined
}

/** A server that can be put on connections. */
export class McpServer extends Context.Service<McpServer, {
  readonly options: Options
  /**
   * Serves a connection, each message in the era that it is written in, until the scope closes or the connection ends. Give
   * each connection a scope of its own: it is listed by `inspect` until that closes.
   *
   * `InMemoryTransport.transport(server.serve)` is the transport of a client in the same process.
   */
  readonly serve: (connection: Connection) => Effect.Effect<Peer.Peer, never, Scope.Scope>
  /** The server, its connections and what runs on them, now, and its tasks that run in this process. */
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
 * Fails with what the definitions fail with: a `DefinitionError` for a name that is taken twice, for instance. It dies where the
 * server's own `icons` or `websiteUrl` are no URIs: clients that check would refuse its every answer.
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
    const problem = details.definitionProblem(describe(options))
    if (problem !== undefined) return yield* Effect.die(new TypeError(`${options.name} cannot be served: ${problem}`))
    const context = yield* Effect.context<Scope.Scope>()
    const scope = Context.get(context, Scope.Scope)
    // What belongs to the building of this layer is nothing that a request may find: a scope that it finds, it would fill.
    const given: Context.Context<never> = Context.omit(Scope.Scope, Layer.CurrentMemoMap)(context)
    const fibers = yield* Fibers.make(given)
    const logs = options.logging === false ? undefined : new LogForwarder(options.logging ?? {}, fibers, given)
    const base = logs?.into(given) ?? given
    const catalog = Catalog.make(base, scope, options.declareListChanged)
    const provided = Context.make(Catalog.Catalog, catalog)
    const loggers = Context.make(References.CurrentLoggers, Context.get(base, References.CurrentLoggers))
    // Its own, so that a second server with the same definitions offers them too.
    const memo = Layer.CurrentMemoMap.forkOrCreate(context)
    const building = Layer.succeedContext(Context.merge(provided, loggers))
    for (const definition of definitions) {
      yield* Layer.buildWithMemoMap(Layer.provide(definition, building), memo, scope)
    }
    const bus = Context.getOrUndefined(given, EventBus)
    const hub = new SubscriptionRegistry(catalog, settings(options, logs), fibers, bus)
    catalog.changes.listener = hub
    for (const { ready } of catalog.extensions.all) if (ready !== undefined) yield* ready
    if (bus !== undefined) yield* bus.subscribe((change) => hub.heard(change))
    yield* Effect.addFinalizer(() => Effect.sync(() => hub.end()))
    return Context.add(provided, McpServer, make(options, catalog, hub, logs))
    // The definitions are built in a loop, which forgets the types of their errors and services.
  })) as never

const settings = (
  { listChangedDebounce = 50, subscriptions = {} }: Options,
  logs: LogForwarder | undefined
): SubscriptionSettings => ({
  debounce: Duration.toMillis(listChangedDebounce),
  maxResources: subscriptions.maxResources ?? 1000,
  maxListens: subscriptions.maxListens ?? 20_000,
  maxListensPerPrincipal: subscriptions.maxListensPerPrincipal ?? 1000,
  logLevel: logs?.defaultLevel
})

const make = (
  options: Options,
  catalog: Catalog.Catalog["Service"],
  hub: SubscriptionRegistry,
  logs: LogForwarder | undefined
): McpServer["Service"] => {
  const revisions = (options.revisions ?? Revision.all).toSorted().toReversed()
  const { instructions, limits, name, version } = options
  const pageSize = Math.max(1, Math.floor(options.pageSize ?? 1000))
  const hints = Object.entries(options.caching ?? {}).map(([method, hint]) => [method, cacheHint(hint)] as const)
  const about = { serverInfo: describe(options), instructions, revisions, pageSize, caching: new Map(hints) }
  const handle = dispatcher.make(about, catalog, hub)
  const dispatch = logs?.around(handle, catalog.base) ?? handle
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
        (current: Context.Context<Scope.Scope>) => withServerServices(current, catalog.base)
      ),
    inspect: Effect.suspend(() =>
      Inspect.server({
        name,
        version,
        peers: hub.peers,
        endpoints: host.endpoints,
        tasks: catalog.extensions.all.flatMap(({ running }) => [...running ?? []])
      })
    ),
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
