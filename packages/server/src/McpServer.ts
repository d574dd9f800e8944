/**
 * A server: its definitions, behind one dispatcher for all five revisions.
 *
 * @example
 * const Server = McpServer.layer({ name: "hello", version: "1.0.0" }, Tool.layer(greet, greeting))
 */
import type { Icon } from "@skein/protocol/BaseMetadata"
import type { Implementation } from "@skein/protocol/Implementation"
import * as Revision from "@skein/protocol/Revision"
import type { Connection } from "@skein/runtime/Connection"
import type * as Inspect from "@skein/runtime/Inspect"
import type { Limits } from "@skein/runtime/Limits"
import * as Peer from "@skein/runtime/Peer"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as References from "effect/References"
import * as Scope from "effect/Scope"
import * as Caching from "./Caching.ts"
import * as Catalog from "./Catalog.ts"
import type { DefinitionError } from "./DefinitionError.ts"
import { EventBus, type ListKind } from "./EventBus.ts"
import {
  areOptions,
  type DefinitionMistake,
  optionsMistake,
  problemOfLayer
} from "./internal/composition/serverMistake.ts"
import type { LocalPart } from "./internal/composition/localParts.ts"
import * as naming from "./internal/composition/naming.ts"
import { placed } from "./internal/catalog/placement.ts"
import { definitionProblem } from "./internal/catalog/validateDefinition.ts"
import type { ServerDispatcher } from "./internal/dispatch/dispatcher.ts"
import * as lateDispatcher from "./internal/dispatch/lateDispatcher.ts"
import { Fibers } from "./internal/base/fibers.ts"
import { type Interrupted, makeInspector } from "./internal/dispatch/inspector.ts"
import type { ServerDescription } from "./internal/dispatch/methodTable.ts"
import { makeServerCore, type ServerCore } from "./internal/dispatch/serverCore.ts"
import { SubscriptionRegistry } from "./internal/subscriptions/subscriptionRegistry.ts"
import * as identity from "./internal/dispatch/identity.ts"
import { LogForwarder, withServerServices } from "./internal/base/logs.ts"
import type * as Logging from "./Logging.ts"
import { internals, localPartsKey } from "./internal/catalog/catalogState.ts"
import { omitUndefined } from "./internal/base/json.ts"

/** The description of a server, and its bounds. */
export interface Options {
  /** A name for programs. */
  readonly name: string
  readonly version: string
  /** A name for people. */
  readonly title?: string | undefined
  readonly description?: string | undefined
  readonly websiteUrl?: string | undefined
  readonly icons?: ReadonlyArray<Icon> | undefined
  /** Instructions for a language model: how to use the server. */
  readonly instructions?: string | undefined
  /** The revisions of the protocol that the server supports. All by default. */
  readonly revisions?: ReadonlyArray<Revision.Revision> | undefined
  /**
   * The number of entries on one page of a list: 1,000 by default, at least 1. Further pages follow with `nextCursor`.
   */
  readonly pageSize?: number | undefined
  /**
   * How long, and by whom, results may be cached, by method. Not at all by default. The hints of a resource take
   * precedence.
   */
  readonly caching?: Caching.Methods | undefined
  /** The bounds of each connection. */
  readonly limits?: Limits | undefined
  /**
   * The kinds of entries that the server declares from the start even if it has none, for a server that adds them while
   * it runs. A client is not notified of changes of a kind that the server had not declared when the client connected.
   */
  readonly declareListChanged?: ReadonlyArray<ListKind> | undefined
  /**
   * How the logs of handlers reach the clients that request them. `false` disables it, and `logging` is not declared.
   * Deprecated since 2026-07-28, but supported there: clients may stop to request logs.
   */
  readonly logging?: Logging.Options | false | undefined
}

export type { MountOptions } from "./internal/composition/naming.ts"
export type { Interrupted } from "./internal/dispatch/inspector.ts"

/** A running server. Transports give it connections. */
export class McpServer extends Context.Service<McpServer, {
  readonly options: Options
  /**
   * Serves a connection until the scope closes or the connection ends. The form of each message decides whether it is
   * handled as a stateless request or as a part of a session. Give each connection a scope of its own: `inspect` lists
   * the connection until that scope closes.
   *
   * `InMemoryTransport.transport(server.serve)` is the transport for a client in the same process.
   */
  readonly serve: (connection: Connection) => Effect.Effect<Peer.Peer, never, Scope.Scope>
  /**
   * Takes a snapshot of the server: its connections, the requests in progress, and the tasks that run in this process.
   */
  readonly inspect: Effect.Effect<Inspect.ServerInfo>
  /**
   * Takes a snapshot as `inspect` does, with options. With `params` it contains the params of the requests: data of
   * users, for an operator who may see it.
   */
  readonly inspectWith: (options: Inspect.Options) => Effect.Effect<Inspect.ServerInfo>
  /**
   * Interrupts a request, or closes a session, by the `key` that a snapshot has for it. A request is answered with
   * `-32603` once its handler has stopped, finalizers included; a `subscriptions/listen` returns its result. A
   * session ends as one that has expired: later requests over HTTP get 404. Its requests are cancelled. It returns what
   * was found, and does not wait for the end. `NotFound`: it has ended already.
   *
   * @example
   * const interruptAll = Effect.gen(function*() {
   *   const server = yield* McpServer.McpServer
   *   for (const { key } of (yield* server.inspect).requests) yield* server.interrupt(key)
   * })
   */
  readonly interrupt: (key: string) => Effect.Effect<Interrupted>
  readonly [internals]: ServerCore
  readonly [localPartsKey]: Effect.Effect<ReadonlyArray<LocalPart>>
}>()("@skein/server/McpServer") {}

/** A definition, made by `Tool.layer`, `Prompt.layer`, `Resource.layer`, `Middleware.layer` and so on. */
export type Definitions = Layer.Layer<never, unknown, unknown>

/**
 * Makes a server with its definitions.
 *
 * A definition is a layer that registers something in the `Catalog`. Lists are in the order of the definitions, also of
 * those that `Layer.mergeAll` builds at the same time. The first middleware is the outermost. The layer requires the
 * services that the definitions require. A layer that several definitions are provided with is built once for the server. The layer
 * provides the `Catalog` too, so that further definitions can be layered on top.
 *
 * Fails with the errors of the definitions, for example a `DefinitionError` for a name that exists twice. Dies if the
 * `icons` or the `websiteUrl` of the server are not valid URIs, because validating clients would refuse every answer of
 * the server.
 *
 * @example
 * const Server = McpServer.layer(
 *   { name: "shop", version: "1.0.0", instructions: "Search before you order." },
 *   RateLimit.layer({ limit: 10, interval: "1 minute" }),
 *   Tool.layer(search, find),
 *   Resource.layer(menu, readMenu)
 * ).pipe(Layer.provide(Database.layer))
 */
export const layer = <const L extends ReadonlyArray<unknown>>(
  // The type of a name alone is a text that the compiler shows.
  options: Options | Capitalize<typeof optionsMistake>,
  ...definitions: L & ReadonlyArray<Definitions | (DefinitionMistake<L[number]> & L[number])>
): Layer.Layer<
  McpServer | Catalog.Catalog,
  Layer.Error<Extract<L[number], Definitions>>,
  Exclude<Layer.Services<Extract<L[number], Definitions>>, Catalog.Catalog>
> =>
  Layer.effectContext(Effect.gen(function*() {
    if (!areOptions(options)) return yield* Effect.die(new TypeError(optionsMistake))
    const problem = definitionProblem(describe(options))
    if (problem !== undefined) return yield* Effect.die(new TypeError(`${options.name} cannot be served: ${problem}`))
    const context = yield* Effect.context<Scope.Scope>()
    const scope = Context.get(context, Scope.Scope)
    // Requests must not find the scope and the memo map that this layer is built with: they would add resources to
    // them.
    const services: Context.Context<never> = Context.omit(Scope.Scope, Layer.CurrentMemoMap)(context)
    const fibers = yield* Fibers.make(services)
    const logs = options.logging === false ? undefined : new LogForwarder(options.logging ?? {}, fibers, services)
    const base = logs?.addTo(services) ?? services
    const catalog = Catalog.make(base, scope, options.declareListChanged)
    const provided = Context.make(Catalog.Catalog, catalog)
    const loggers = Context.make(References.CurrentLoggers, Context.get(base, References.CurrentLoggers))
    // Each server has its own memo map, so that a second server with the same definitions registers them too.
    const memo = placed(context)
    const building = Layer.succeedContext(Context.merge(provided, loggers))
    for (const definition of definitions as ReadonlyArray<unknown> as ReadonlyArray<Definitions>) {
      const problem = problemOfLayer(definition)
      if (problem !== undefined) return yield* Effect.die(new TypeError(`${options.name} cannot be served: ${problem}`))
      yield* Layer.buildWithMemoMap(Layer.provide(definition, building), memo, scope)
    }
    const bus = Context.getOrUndefined(services, EventBus)
    const subscriptions = new SubscriptionRegistry(catalog, logs?.defaultLevel, fibers, bus)
    catalog[internals].changes.listener = subscriptions
    // The work of all extensions ends at once. A program has `shutdownTimeout` for all of them together.
    const working = yield* Scope.fork(scope, "parallel")
    yield* catalog[internals].extensions.start(working)
    if (bus !== undefined) yield* bus.subscribe((change) => subscriptions.deliver(change))
    yield* Effect.addFinalizer(() => Effect.sync(() => subscriptions.shutdown()))
    const description = descriptionOf(options)
    const dispatcher = yield* lateDispatcher.make(description, catalog, subscriptions, logs, fibers)
    return Context.add(provided, McpServer, make(options, catalog, subscriptions, dispatcher, description.revisions))
    // Building the definitions in a loop loses the types of their errors and services: hence the cast.
  })) as never

/**
 * Makes definitions, or whole servers, a part of a server, with a prefix before their names.
 *
 * - Tools and prompts are named `weather_forecast`: the prefix, the `separator`, and the name in the part.
 * - URIs get the prefix after the scheme: `data://cities` becomes `data://weather/cities`, `file:///a` becomes
 *   `file://weather//a`, `urn:isbn:1` becomes `urn:weather/isbn:1`. The same applies to URI templates, which need a scheme
 *   before their first variable. URIs of the part in its results (resource links, embedded resources, contents) get the
 *   prefix, too; other URIs stay.
 * - The part has a catalog of its own. Its handlers use its own names and URIs in `Tool.add`, `Catalog.setEnabled`,
 *   `Catalog.updated` and so on, and clients of the server receive the changes under the names that they know.
 * - Middleware in the part runs inside of all middleware of the server, and only for calls, reads, subscriptions and
 *   completions of the part's own entries. It sees them under their names in the part.
 * - Extensions in the part receive only calls of its tools. Their methods and capabilities are those of the whole server.
 * - Entries are listed at the place of the mount. Parts may have mounted parts.
 *
 * A whole server, the layer that `McpServer.layer` returns, keeps the services, the logging and the middleware that it was
 * built with. Its `instructions`, page size, caching hints and bounds do not apply, and it may be served at the same time.
 * The definitions of one list may be mounted several times; services that they are provided with are built once.
 *
 * Fails with `DefinitionError` as the definitions do: `DuplicateName` for a name that the server has already, `InvalidUri`
 * and `InvalidUriTemplate` for a URI that is not valid with the prefix.
 *
 * @example
 * const server = McpServer.layer(
 *   { name: "home", version: "1.0.0" },
 *   McpServer.mount("weather", Tool.layer(forecast, getForecast), Resource.layer(cities, readCities)),
 *   McpServer.mount({ prefix: "shop", separator: "." }, ShopServer)
 * )
 */
export const mount = <const L extends ReadonlyArray<unknown>>(
  at: string | undefined | naming.MountOptions,
  ...definitions: L & ReadonlyArray<Definitions | (DefinitionMistake<L[number]> & L[number])>
): Layer.Layer<
  never,
  Layer.Error<Extract<L[number], Definitions>> | DefinitionError,
  Layer.Services<Extract<L[number], Definitions>> | Catalog.Catalog
> =>
  // Building the definitions in a loop loses the types of their errors and services: hence the cast. A server without
  // mounts does not load their code.
  Layer.unwrap(Effect.map(
    Effect.promise(() => import("./internal/composition/mount.ts")),
    ({ mount }) => mount(naming.make(at), definitions as ReadonlyArray<unknown> as ReadonlyArray<Definitions>)
  )) as never

const make = (
  options: Options,
  catalog: Catalog.Catalog["Service"],
  subscriptions: SubscriptionRegistry,
  dispatcher: ServerDispatcher,
  revisions: ReadonlyArray<Revision.Revision>
): McpServer["Service"] => {
  const { limits, name, version } = options
  const { base } = catalog[internals]
  const core = makeServerCore(catalog, subscriptions, dispatcher, identity.make(revisions), limits)
  const inspector = makeInspector({ name, version }, core)
  const serve = (connection: Connection): Effect.Effect<Peer.Peer, never, Scope.Scope> =>
    Effect.acquireRelease(
      Effect.tap(Peer.make(core.options(connection)), (peer) => Effect.sync(() => subscriptions.peers.add(peer))),
      (peer) => Effect.sync(() => core.forget(peer))
    )
  return McpServer.of({
    options,
    // Every request starts with the services that the server was built with, on every connection.
    serve: (connection) =>
      Effect.updateContext(
        serve(connection),
        (current: Context.Context<Scope.Scope>) => core.services(withServerServices(current, base))
      ),
    inspect: inspector.inspect({}),
    inspectWith: inspector.inspect,
    interrupt: inspector.interrupt,
    [internals]: core,
    // A server that runs does not load it.
    [localPartsKey]: Effect.map(
      Effect.promise(() => import("./internal/composition/localParts.ts")),
      ({ localParts }) => localParts(catalog)
    )
  })
}

const descriptionOf = (options: Options): ServerDescription => {
  const { caching = {}, instructions, pageSize = 1000, revisions = Revision.all } = options
  return {
    serverInfo: describe(options),
    instructions,
    revisions: revisions.toSorted().toReversed(),
    pageSize: Math.max(1, Math.floor(pageSize)),
    caching: new Map(Object.entries(caching).map(([method, hint]) => [method, Caching.toWire(hint)]))
  }
}

const describe = ({ name, version, title, description, websiteUrl, icons }: Options): Implementation =>
  omitUndefined({ name, version, title, description, websiteUrl, icons })
