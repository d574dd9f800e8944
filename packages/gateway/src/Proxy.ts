/**
 * Remote and child servers as definitions of a server: their tools, resources, templates and prompts are beside the
 * server's own.
 *
 * The server and the remote server may speak any revisions of the protocol. The caller of a call answers the input
 * requests of the remote server during that call (forms, URLs, samples of a model, roots). Progress, log messages and
 * cancellation are passed on for each call.
 *
 * This module has nothing to do with `Proxy` of `@skein/auth`, which is an OAuth proxy.
 *
 * @example
 * const Files = Proxy.layer(Client.make(Stdio.transport({ command: "npx", args: ["files-server"] })))
 * const Server = McpServer.layer({ name: "desk", version: "1.0.0" }, Tool.layer(add, sum), Files)
 */
import type { Client } from "@skein/client/Client"
import type { ClientError } from "@skein/client/ClientError"
import type * as Reconnect from "@skein/client/Reconnect"
import type { Prompt } from "@skein/protocol/Prompt"
import type { Resource, ResourceTemplate } from "@skein/protocol/Resource"
import type { Tool } from "@skein/protocol/Tool"
import { resolve } from "@skein/runtime/Options"
import type { Caller, RequestContext } from "@skein/runtime/RequestContext"
import * as Catalog from "@skein/server/Catalog"
import * as Extension from "@skein/server/Extension"
import type { HandlerError } from "@skein/server/HandlerError"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import {
  type Connect,
  connectionOf,
  type Environment,
  isStateless,
  type MakeClient,
  makePool,
  open
} from "./internal/connection/connections.ts"
import { type EntryContext, unlistedEntry } from "./internal/catalog/entries.ts"
import { makeForward } from "./internal/calls/forward.ts"
import { type Lists, makeListing, type Selection } from "./internal/catalog/listing.ts"
import { makeParkedCalls } from "./internal/calls/parkedCalls.ts"
import { makeRefresh, RefreshInterval } from "./internal/catalog/refresh.ts"
import { named, upper } from "./internal/connection/remoteError.ts"
import { declaredBy, everything, makeRelay } from "./internal/connection/relay.ts"
import { makeRemote } from "./internal/connection/remote.ts"
import { ProxyState, ProxyStates, type State } from "./internal/connection/proxyState.ts"

export type { State } from "./internal/connection/proxyState.ts"
export type { RemoteStatus } from "./internal/connection/remote.ts"
export type { RemoteFailure } from "./internal/connection/remoteError.ts"
export type { Lists, Selection } from "./internal/catalog/listing.ts"

/**
 * The effect that makes a client of the remote server, such as `Client.make(transport, options)`. The proxy runs it,
 * and runs it again when the client has ended. It provides the services `Elicitation`, `Sampling`, `Roots` and
 * `NotificationListener` of `@skein/client`, so that the callers are asked.
 */
export type Source<R = never> = Effect.Effect<Client, ClientError, R>

/**
 * Makes the client for a caller. If it fails with another error than a `ClientError`, the caller sees the message, as that of
 * the handler of a tool: "Link your account at https://…".
 */
export type MakeSource<R = never> = (caller: Caller) => Effect.Effect<Client, ClientError | HandlerError, R>

/** Whose connections a proxy uses for calls: made by `perPrincipal`, `perSession` and `perCall`. */
export interface Connections<R = never> {
  readonly per: "principal" | "session" | "call"
  readonly make: MakeSource<R>
  readonly options: ConnectionOptions
}

/** The bounds of connections for single callers. */
export interface ConnectionOptions {
  /**
   * How many connections may be open: 100 by default. At the bound, the one that was unused for the longest time is
   * closed. If all are in use, a request is refused with `-32603` (`TooManyConnections`). One client, which is a
   * principal or the network of an address, may have three quarters of them. Raise it for more users at the same time;
   * lower it if each connection is a process.
   */
  readonly maxConnections?: number | undefined
  /**
   * How long an unused connection stays open: 5 minutes by default. Lower it if each connection is a process, or costs
   * something at the remote server.
   */
  readonly idleTimeout?: Duration.Input | undefined
}

/** The bounds of a proxy. */
export interface Limits {
  /**
   * How many entries of each kind are taken over: 1,000 by default. Further ones are left out, which is logged. Raise
   * it for a remote server with longer lists.
   */
  readonly maxEntries?: number | undefined
  /**
   * How many calls of stateless callers may wait for answers in this process: 1,000 by default. At the bound a further
   * input request is refused, which the remote server may handle. One client, which is a principal or the network of an
   * address, may have a tenth of them. Raise it for many users of tools that ask, or if many users share one principal.
   */
  readonly maxWaiting?: number | undefined
  /**
   * How long such a call waits for the caller's answers: 10 minutes by default, as the `ttl` of `RequestState`. Then it
   * is cancelled at the remote server. Raise it for questions that take people longer.
   */
  readonly waitTimeout?: Duration.Input | undefined
}

/** The options of a proxy. All of them are optional. */
export interface Options<R = never> {
  /** The name of the remote server in messages: the `label` of the client by default, once it was connected. */
  readonly label?: string | undefined
  /** Which tools are taken over: all by default. A predicate receives the definition of the remote server. */
  readonly tools?: Selection<Tool> | undefined
  /** Which resources are taken over: all by default. */
  readonly resources?: Selection<Resource> | undefined
  /**
   * Which resource templates are taken over: all by default. A template may match resources that the option `resources`
   * leaves out.
   */
  readonly resourceTemplates?: Selection<ResourceTemplate> | undefined
  /**
   * Which URIs can be read and subscribed to although no list has them, such as those of links in results of tools. The
   * default is all of them if `resources` and `resourceTemplates` are not restricted, and none otherwise. The server
   * reads URIs of its own resources and templates itself. If several proxies have a URI, `ResourceNotFound` of one of
   * them lets the server ask the next one.
   */
  readonly unlistedResources?: boolean | ((uri: string) => boolean) | undefined
  /** Which prompts are taken over: all by default. */
  readonly prompts?: Selection<Prompt> | undefined
  /** The bounds of the proxy. The timeouts of forwarded requests are those of the client (`Client.Options`). */
  readonly limits?: Limits | undefined
  /**
   * Whose connection calls use.
   *
   * - `auto` (the default): all callers share the connection that also lists. If the remote server asks a caller, and the
   *   transport does not show which one (stdio), the session of that caller has this connection alone from then on. Each other
   *   session has one of its own, as with `perSession`, and so has each stateless call at the same time as another one: otherwise
   *   the question could reach another user, and is refused while several have calls in progress.
   * - `shared`: all callers share it in any case. It is the only choice for a client that is open already.
   * - `perPrincipal`, `perSession` and `perCall`: the credentials of each user can be used at the remote server.
   */
  readonly connections?: "auto" | "shared" | Connections<R> | undefined
  /**
   * The lists while the remote server cannot be reached: `last` offers the last ones (the default), and `nothing`
   * removes them. Calls fail with `-32603` (`RemoteUnavailable`) in both cases.
   */
  readonly whileDown?: "last" | "nothing" | undefined
  /** The lists at the start if the remote server cannot be reached then: empty by default. */
  readonly initial?: Lists | undefined
  /** Receives the lists after each change, to store them for `initial`. */
  readonly onListing?: ((lists: Lists) => Effect.Effect<void>) | undefined
  /**
   * How long the start of the server waits for the lists of the remote server: 10 seconds by default. After that, or
   * after the first failure, the server starts without them, and its lists change when they arrive. Lower it for hosts
   * that give a server little time to start.
   */
  readonly readyTimeout?: Duration.Input | undefined
  /**
   * When the proxy makes a new client after one that has ended or could not connect: the defaults of
   * `Reconnect.Policy`, without a limit of attempts (`maxAttempts` is ignored). A client reconnects first, by its own
   * option `reconnect`.
   */
  readonly reconnect?: Reconnect.Policy | undefined
}

/**
 * A connection for each principal, made for the first caller of it. Requests without a principal share one. Callers
 * with other capabilities have another connection, since a session declares them to the remote server.
 *
 * The lists of the proxy stay those of its first argument. A tool that they show may be refused to some principals by
 * the remote server.
 *
 * @example
 * const connections = Proxy.perPrincipal(({ principal }) =>
 *   Client.make(Http.transport({ url, headers: { authorization: tokenOf(principal) } })))
 */
export const perPrincipal = <R = never>(
  make: MakeSource<R>,
  options: ConnectionOptions = {}
): Connections<R> => ({ per: "principal", make, options })

/**
 * A connection for each session, closed with the session: for a remote server that remembers things about a session,
 * and for child processes that must not be shared. Stateless requests have no session: they have connections as with
 * `perPrincipal`.
 *
 * @example
 * const connections = Proxy.perSession(() => Client.make(Stdio.transport({ command: "files-server" })))
 */
export const perSession = <R = never>(
  make: MakeSource<R>,
  options: ConnectionOptions = {}
): Connections<R> => ({ per: "session", make, options })

/**
 * A connection that one call at a time uses, and the next one of the same principal after it: for a server that can do one thing
 * at a time, or that must not see two calls of a session beside each other.
 *
 * @example
 * const connections = Proxy.perCall(() => Client.make(Stdio.transport({ command: "printer-server" })))
 */
export const perCall = <R = never>(
  make: MakeSource<R>,
  options: ConnectionOptions = {}
): Connections<R> => ({ per: "call", make, options })

/**
 * The state of each remote server behind this server, in the order of the definitions.
 *
 * @example
 * const down = Effect.map(Proxy.states, (states) => states.filter(({ state }) => state !== "connected"))
 */
export const states: Effect.Effect<ReadonlyArray<State>, never, Catalog.Catalog> = Effect.map(
  Catalog.Catalog,
  (catalog) =>
    Extension.list(catalog).flatMap(({ services }) => {
      const read = services && Context.getOrUndefined(services, ProxyState)
      return read === undefined ? [] : [read()]
    })
)

const none: Lists = { tools: [], resources: [], resourceTemplates: [], prompts: [] }

// Numbers the texts of entries that no list shows, which must differ.
let unlisted = 0

/**
 * Makes the tools, resources, resource templates and prompts of a remote server definitions of a server.
 *
 * - The first argument makes the client that lists and, unless there are `connections`, serves all calls. It may be a
 *   client that is open already. Such a client answers input requests with its own handlers, its log messages are not passed
 *   on, and it is not replaced after its end.
 * - Entries have the names that they have at the remote server. Mount the proxy to give them a prefix or other names:
 *   `McpServer.mount("weather", Proxy.layer(…))`, or `McpServer.mount({ name: (own, kind) => … }, Proxy.layer(…))`. An
 *   entry whose name a definition of the server has is left out. If several proxies have a name, the entry of the first of
 *   them in the order of the definitions is offered. Both are logged as warnings.
 * - The server starts even if the remote server cannot be reached, and connects as soon as it can. Its lists change
 *   then, and whenever those of the remote server do.
 * - Errors of the remote server keep their code, message and data. A failure without such an error is `-32603`, with a
 *   `RemoteFailure` as `data.reason`.
 * - Calls of stateless callers (2026-07-28) wait in this process for answers if the remote server has sessions. In a fleet
 *   the answers must reach the same process.
 *
 * @example
 * const Weather = Proxy.layer(Client.make(Http.transport({ url: "https://weather.example/mcp" })), {
 *   tools: ({ annotations }) => annotations?.readOnlyHint === true,
 *   prompts: false
 * })
 */
export const layer = <R = never, R2 = never>(
  source: Client | Source<R>,
  options: Options<R2> = {}
): Layer.Layer<never, never, Catalog.Catalog | Exclude<R | R2, Scope.Scope>> =>
  Extension.effect(Effect.gen(function*() {
    const context = yield* Effect.context<Exclude<R | R2, Scope.Scope> | Scope.Scope | Catalog.Catalog>()
    const catalog = Context.get(context, Catalog.Catalog)
    // Connections end at once, since the end of a child process may take seconds.
    const scope = Scope.makeUnsafe("parallel")
    const services = Context.omit(Scope.Scope, Layer.CurrentMemoMap, Catalog.Catalog)(context)
    const provided = <E>(make: Effect.Effect<Client, E, R | R2>): MakeClient<E> =>
      Effect.updateContext(
        make as Effect.Effect<Client, E>,
        (own: Context.Context<never>) => Context.merge(services, own) as Context.Context<never>
      ) as MakeClient<E>
    const isMade = Effect.isEffect(source)
    const name = { label: options.label ?? (isMade ? undefined : source.label) }
    const environment: Environment = {
      catalog,
      name,
      scope,
      run: (effect) => Fiber.runIn(Effect.runForkWith(services as Context.Context<never>)(effect), scope),
      unnamed: (request) => {
        if (mode !== "auto" || isApart) return
        isApart = true
        const first = request?.request
        const held = first === undefined || isStateless(first) ? Effect.void : hold(first)
        const text = `${upper(named(name))} asks its callers: each session has its own connection now`
        environment.run(Effect.andThen(held, Effect.logInfo(text)))
      }
    }
    const mode = options.connections ?? (isMade ? "auto" : "shared")
    /** Whether calls use the connections of single callers. */
    let isApart = typeof mode === "object"
    const remote = makeRemote(
      name,
      isMade
        ? open(provided(source), everything, environment)
        : Effect.sync(() => connectionOf(source, makeRelay(catalog, environment.run))),
      options.reconnect,
      isMade
    )
    const apart: Connections<R | R2> | undefined = typeof mode === "object"
      ? mode
      : mode === "auto" && isMade
      ? perSession(() => source)
      : undefined
    const pool = apart === undefined ? undefined : makePool({
      per: apart.per,
      make: (caller) => provided(apart.make(caller)),
      // The remote server behaves as it did on the shared connection.
      declare: mode === "auto" ? () => everything : declaredBy,
      isExclusive: mode === "auto" || apart.per === "call",
      ...resolve(apart.options, { maxConnections: 100 }, { idleTimeout: "5 minutes" })
    }, environment)
    const limits = resolve(
      options.limits ?? {},
      { maxEntries: 1_000, maxWaiting: 1_000 },
      { waitTimeout: "10 minutes" }
    )
    const parked = makeParkedCalls(limits, scope)
    /** The number of requests that use the shared connection. */
    let users = 0
    /** The session that has the shared connection alone, once the callers are apart. */
    let holder: RequestContext["peer"]
    /** The sessions that have a connection of their own. */
    const own = new WeakSet<NonNullable<RequestContext["peer"]>>()
    const hold = ({ caller, peer }: RequestContext): Effect.Effect<void> =>
      Effect.suspend(() => {
        holder = peer
        const free = Effect.sync(() => {
          if (holder === peer) holder = undefined
        })
        const session = Effect.provideService(Extension.session(caller), Catalog.Catalog, catalog)
        return Effect.flatMap(session, (scope) => scope === undefined ? free : Scope.addFinalizer(scope, free))
      })
    const shared: Connect = (_, ended) =>
      Effect.andThen(
        Effect.acquireRelease(Effect.sync(() => void users++), () => Effect.sync(() => void users--)),
        remote.connect(ended)
      )
    const connect: Connect = (request, ended) =>
      Effect.suspend(() => {
        if (!isApart || pool === undefined) return shared(request, ended)
        if (mode !== "auto") return pool.connect(request, ended)
        const isOfSession = !isStateless(request)
        if (isOfSession && holder === request.peer) return shared(request, ended)
        // A session keeps its connection, which may have a state.
        const isKept = isOfSession && own.has(request.peer!)
        if (isKept || holder !== undefined || users > 0) {
          if (isOfSession) own.add(request.peer!)
          return pool.connect(request, ended)
        }
        return isOfSession ? Effect.andThen(hold(request), shared(request, ended)) : shared(request, ended)
      })
    const entries: EntryContext = {
      forward: makeForward(connect, parked, name, environment.run),
      watch: (uri) => remote.watch(uri, catalog),
      get isPrivate() {
        return isApart
      }
    }
    const { prompts = true, resourceTemplates = true, resources = true, tools = true } = options
    const listing = makeListing(catalog, entries, {
      select: { tools, resources, resourceTemplates, prompts },
      maxEntries: limits.maxEntries,
      name
    })
    const { initial = none, onListing, readyTimeout = "10 seconds", whileDown } = options
    const refresh = makeRefresh(listing, name, yield* RefreshInterval, initial, onListing)
    const lost = whileDown === "nothing" ? listing.clear : Effect.void

    const includes = options.unlistedResources ?? (resources === true && resourceTemplates === true)
    const addUnlisted = includes === false ? Effect.void : Effect.suspend(() => {
      const text = `{+uri}#unlisted-${++unlisted}`
      const entry = unlistedEntry(text, includes === true ? () => true : includes, entries)
      return Effect.orDie(catalog.templates.add(text, entry))
    })

    /** Runs once the server's own definitions are registered, so that they have their names in any case. */
    const ready = Effect.gen(function*() {
      // The entries go first: a call to one whose connections have ended would wait for the next one.
      yield* Effect.addFinalizer((exit) => Effect.andThen(listing.clear, Scope.close(scope, exit)))
      yield* Scope.provide(addUnlisted, scope)
      const settled = Deferred.makeUnsafe<boolean>()
      const listener = {
        connected: (connection: { readonly client: Client }) =>
          Effect.andThen(refresh.follow(connection.client), Deferred.succeed(settled, true)).pipe(Effect.asVoid),
        reconnected: whileDown === "nothing" ? Effect.andThen(refresh.restore, refresh.markAll) : refresh.markAll,
        lost
      }
      const running = remote.run(listener, Effect.asVoid(Deferred.succeed(settled, false)))
      yield* Effect.forkIn(Effect.provideContext(running, services as Context.Context<never>), scope)
      const isListed = yield* Effect.timeoutOption(Deferred.await(settled), readyTimeout)
      const isKnown = isListed._tag === "Some" && isListed.value
      if (!isKnown && whileDown !== "nothing") yield* refresh.restore
    })
    const lists = [
      ...(tools === false ? [] : ["tools"] as const),
      ...(resources === false && resourceTemplates === false ? [] : ["resources"] as const),
      ...(prompts === false ? [] : ["prompts"] as const)
    ]
    const state = (): State => {
      const { client, ...status } = remote.status()
      return {
        label: name.label,
        ...status,
        info: client?.server,
        revision: client?.revision,
        entries: listing.counts(),
        connections: pool?.size() ?? 0,
        parkedCalls: parked.size()
      }
    }
    const known = yield* ProxyStates
    if (known !== undefined) {
      yield* Effect.acquireRelease(Effect.sync(() => known.add(state)), () => Effect.sync(() => known.delete(state)))
    }
    const shown = Context.make(ProxyState, state)
    return {
      name: `proxy of ${name.label ?? "a remote server"}`,
      lists,
      ready,
      services: shown
    } satisfies Extension.Extension
  }))
