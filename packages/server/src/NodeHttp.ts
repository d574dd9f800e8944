/**
 * A server on `node:http`: as a process, as a layer, or as a handler inside of a framework such as Express or Fastify.
 *
 * @example
 * NodeHttp.runMain(McpServer.layer({ name: "hello", version: "1.0.0" }, tools), { port: 3000 })
 */
import type { TransportError } from "@skein/runtime/TransportError"
import * as Defaults from "@skein/runtime/Options"
import * as ProcessLocal from "@skein/runtime/ProcessLocal"
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import type { IncomingMessage, ServerResponse } from "node:http"
import * as Http from "./Http.ts"
import { problemOfLayer, type ServerMistake } from "./internal/composition/serverMistake.ts"
import { defaultPrefix, fillIn, namesOf, workerVariable } from "./internal/base/environment.ts"
import * as health from "./internal/http/endpoint/health.ts"
import { resolve } from "./internal/http/access/options.ts"
import { Transport } from "./internal/http/sessions/nodeRequests.ts"
import type { NodeRequests } from "./Fleet.ts"
import * as adapter from "./internal/http/adapters/node.ts"
import type { RequestInput } from "./internal/http/adapters/node.ts"
import * as server from "./internal/http/adapters/nodeServer.ts"
import { openTransport } from "./internal/http/adapters/openTransport.ts"
import { variables } from "./internal/http/endpoint/variables.ts"
import type { LogOptions } from "./internal/process/logFormat.ts"
import * as main from "./internal/process/nodeMain.ts"
import { internals } from "./internal/catalog/catalogState.ts"
import { statesInMemory } from "./internal/state/makeState.ts"
import { McpServer } from "./McpServer.ts"
import type * as NodeRoutes from "./NodeRoutes.ts"
import * as RequestState from "./RequestState.ts"

export type { RequestInput } from "./internal/http/adapters/node.ts"

/**
 * Resolves the principal of a request. Its parameter may have a subtype of `IncomingMessage`, such as Express's
 * `Request`. The compiler cannot check that the framework passes that subtype.
 */
export type FindPrincipal = {
  // A method, because the parameters of methods are bivariant.
  find(request: IncomingMessage): ReturnType<Http.FindPrincipal>
}["find"]

/** Options of a handler. */
export interface HandlerOptions extends Http.Options {
  /**
   * Resolves the principal of a request that the handler receives without one. It reads a property that the framework's
   * middleware has set (`(request: express.Request) => request.user`), or authenticates the request. It runs after the
   * checks of Host, Origin and path. It returns the principal, or `undefined` for an anonymous caller: a value, a promise or
   * an effect. It refuses a request with `Http.Refusal`: by throwing it, rejecting or failing with it. Any other error, and
   * a value that is not a principal, is logged, and the request is answered with 500. An effect is interrupted when the
   * client disconnects. The option `protection` is asked for the principal that it does not find.
   */
  readonly principal?: FindPrincipal | undefined
}

/**
 * Handles a request of `node:http`. The optional third argument has the principal and the parsed body of the request. A
 * function there (the `next` of Express) is ignored.
 *
 * @example
 * // Fastify
 * app.all("/mcp", (request, reply) => {
 *   reply.hijack()
 *   handler(request.raw, reply.raw, { body: request.body })
 * })
 */
export type Handler = (
  request: IncomingMessage,
  response: ServerResponse,
  input?: RequestInput | ((error?: unknown) => void)
) => void

/** The paths for probes, and the condition of being ready. */
export interface Health<R = never> {
  /** The path that responds with 200 as long as the process handles requests: `/livez` by default. */
  readonly live?: string | undefined
  /**
   * The path that responds with 200 while the server is ready for requests, and else with 503: `/readyz` by default. It is
   * not ready while it shuts down, from the beginning of `drainDelay`, and while `check` does not succeed. With `workers`,
   * each one answers for all: they are ready when all have started, as long as `check` succeeds in each one that serves.
   */
  readonly ready?: string | undefined
  /**
   * Whether the server is ready, for example whether its database responds: an effect, or a function that returns a value or
   * a promise. The server is not ready if it fails, throws, rejects or returns `false`, or after 1 second, as long as
   * Kubernetes waits for a probe: then the effect is interrupted, or the `signal` of the function aborts. It is run for
   * each probe, but never twice at the same time, and not again before it has ended: probes that arrive meanwhile get the
   * same result. Each change of the result is logged.
   */
  readonly check?: Effect.Effect<unknown, unknown, R> | ((signal: AbortSignal) => unknown) | undefined
}

/** The bounds of a listening server. */
export interface Limits extends Http.Limits, server.Limits {}

/** Options of a listening server. `R` are the services that they need. */
export interface Options<R = never> extends HandlerOptions {
  /** The port: 3000 by default, 0 for any free port. */
  readonly port?: number | undefined
  /**
   * The address to listen on: `127.0.0.1` by default, so that other machines cannot reach the server. A name or address
   * that is not a wildcard is added to the default `allowedHosts`.
   */
  readonly host?: string | undefined
  /** The bounds of the endpoint and of its listener. */
  readonly limits?: Limits | undefined
  /**
   * Answers the probes of a platform: `true` for `/livez` and `/readyz`, or other paths and a `check`. The answers to GET
   * and HEAD are 200 or 503 with a short JSON body. They need no credentials, and the `Host` of a probe is not checked.
   * `ready` responds with 503 while the server shuts down. Off by default.
   *
   * @example
   * NodeHttp.runMain(Server, { health: { check: sql`SELECT 1` }, drainDelay: "10 seconds" })
   */
  readonly health?: boolean | Health<R> | undefined
  /**
   * How long the server continues to accept requests after the shutdown has begun: 0 seconds by default. Meanwhile the
   * `ready` path of `health` responds with 503, so that load balancers stop sending requests, and each answer closes its
   * connection. Then the listener closes, and `shutdownTimeout` begins. A server that fails shuts down without the delay.
   * Raise it to the time that your load balancer takes to see the probe.
   */
  readonly drainDelay?: Duration.Input | undefined
  /**
   * Routes of Effect's `HttpRouter` for the paths that are not of the endpoint or of its pages, such as `/metrics` or
   * `/webhooks`: `NodeRoutes.make` makes them of a layer. None by default.
   *
   * @example
   * const Metrics = HttpRouter.add("GET", "/metrics", Effect.map(scrape, HttpServerResponse.text))
   * NodeHttp.runMain(Server, { routes: NodeRoutes.make(Metrics) })
   */
  readonly routes?: NodeRoutes.Routes<R> | undefined
  /**
   * The keys of `RequestState`, which all instances of a server behind a load balancer need: secrets of at least 32 bytes. The
   * first one encrypts, all of them decrypt. One random key by default. Those of `RequestState.layer` win. A key that is too
   * short is a defect.
   */
  readonly stateKeys?: ReadonlyArray<RequestState.Key> | undefined
  /**
   * HTTP requests between the nodes of a `Fleet`, for the sessions of HTTP+SSE, for streams of requests in progress, and for
   * `sessions: "home"`. None by default; the workers of `runMain` have them. A key that is too short is a defect.
   *
   * @example
   * NodeHttp.layer({ nodeRequests: { keys: [key], host: "0.0.0.0", port: 8081, advertisedHost: podAddress } })
   */
  readonly nodeRequests?: NodeRequests | undefined
}

/** A listening server. */
export class Server extends Context.Service<Server, {
  readonly host: string
  readonly port: number
  /** The URL of the endpoint. */
  readonly url: string
  readonly endpoint: Http.Endpoint
}>()("@skein/server/NodeHttp/Server") {}

const prepare = (
  endpoint: Http.Endpoint,
  options: HandlerOptions,
  expects: boolean,
  probes?: health.Probes,
  routes?: NodeRoutes.Running & { readonly isRoute: (path: string) => boolean }
) => {
  const shared: adapter.Shared = { closing: false, expects, trustedProxies: options.trustedProxies ?? 0 }
  const handle: Parameters<typeof adapter.receive>[4] = (request, answer, message, response) => {
    if (probes?.handle(request, answer) === true) return
    // A request that is not valid HTTP is refused by the endpoint.
    if (routes?.isRoute(request.path) === true && request.headFault === undefined) {
      return routes.handle(message, response, request, answer, shared.closing)
    }
    const { principal } = options
    const find = principal === undefined || request.principal !== undefined ? undefined : () => principal(message)
    endpoint.handle(request, answer, find)
  }
  const handler: Handler = (message, response, more) =>
    adapter.receive(message, response, shared, typeof more === "function" ? undefined : more, handle)
  return { handler, shared }
}

/**
 * Makes a handler for a `node:http` server of your own, or for a framework. Closing the scope ends the requests in
 * progress. Close it before you close open connections: until then, the end of a connection counts as the client's, and
 * may cancel its call.
 *
 * Mount it for all HTTP methods on its path. It checks the path that the client requested, even if a router has
 * shortened `request.url`.
 *
 * @example
 * const handler = yield* NodeHttp.handler({ allowedHosts: ["mcp.example.com"] })
 * const server = createServer(handler)
 */
export const handler = (options: HandlerOptions = {}): Effect.Effect<Handler, never, McpServer | Scope.Scope> =>
  Effect.gen(function*() {
    const endpoint = yield* Http.make(options)
    const { handler, shared } = prepare(endpoint, options, false)
    yield* Effect.addFinalizer(() => Effect.sync(() => void (shared.closing = true)))
    return handler
  })

const makeProbes = <R>(
  { check, live = "/livez", ready = "/readyz" }: Health<R>,
  paths: ReadonlyArray<string>,
  services: Context.Context<never>
) => {
  const run = typeof check === "function" ? Effect.promise(async (signal) => check(signal)) : check
  // The services of `R` are among those of the caller.
  return health.make({ live, ready, check: run as Effect.Effect<unknown, unknown> | undefined }, paths, services)
}

/** The times of an orderly end, in milliseconds. */
const endOf = ({ drainDelay, shutdownTimeout }: Pick<Options, "drainDelay" | "shutdownTimeout">) =>
  Defaults.resolve({ drainDelay, shutdownTimeout }, {}, { drainDelay: 0, shutdownTimeout: 5_000 })

/**
 * Listens until the scope closes. Fails with `TransportError` if it cannot listen, for example because the port is in
 * use.
 *
 * @example
 * const { url } = yield* NodeHttp.serve({ port: 0 })
 */
export const serve = <R = never>(
  options: Options<R> = {}
): Effect.Effect<Server["Service"], TransportError, McpServer | Scope.Scope | R> => listen(options, false)

/** `isMain` if it is the server of the process, which logs its end. */
const listen = Effect.fnUntraced(function*<R = never>(
  given: Options<R>,
  isMain: boolean
): Effect.fn.Return<Server["Service"], TransportError, McpServer | Scope.Scope | R> {
  // The finalizer of the listener closes it, between its two steps.
  const inner = yield* Scope.fork(yield* Effect.scope)
  const { host = "127.0.0.1", port = 3000 } = given
  if (given.stateKeys !== undefined) {
    yield* Effect.orDie(RequestState.checkKeys(given.stateKeys))
    ;(yield* McpServer)[internals].catalog[internals].stateKeys.ofEndpoint ??= given.stateKeys
  }
  const allowedHosts = given.allowedHosts ?? server.allowedHostsOf(host)
  const options = yield* Scope.provide(Http.withParts({ ...given, allowedHosts }), inner)
  const services = yield* Http.adapterContext
  const nodes = yield* openTransport(services, given.nodeRequests, options)
  const make = Scope.provide(Http.make(options), inner)
  const endpoint = yield* (nodes === undefined ? make : Effect.provideService(make, Transport, nodes.transport))
  const paths = Http.paths(options)
  const probing = options.health === true ? {} : options.health || undefined
  const probes = probing && (yield* makeProbes(probing, paths, services))
  const running = options.routes && (yield* options.routes.start(resolve(options), services))
  const routes = running && { ...running, isRoute: server.isRouteBeside(paths) }
  const { handler, shared } = prepare(endpoint, options, true, probes, routes)
  const { drainDelay } = endOf(options)
  // It stops listening after the endpoint is closed: other nodes resume the streams of its last requests.
  if (nodes !== undefined) yield* nodes.listen
  const address = yield* server.serve({
    host,
    port,
    limits: options.limits,
    handle: handler,
    shared,
    beforeEnd: (exit) =>
      Effect.suspend(() => {
        if (probes !== undefined) probes.isDraining = true
        const isFailure = Exit.isFailure(exit) && !Cause.hasInterruptsOnly(exit.cause)
        const delay = isFailure ? 0 : drainDelay
        const log = delay > 0 || isMain ? server.logShutdown(endpoint, delay) : Effect.void
        if (delay === 0) return log
        shared.closing = true
        return Effect.andThen(log, Effect.sleep(delay))
      }),
    end: Effect.all([Scope.close(inner, Exit.void), routes?.close ?? Effect.void], { concurrency: 2, discard: true })
  })
  const url = server.urlOf(address, options.path ?? "/mcp")
  return Server.of({ host: address.address, port: address.port, url, endpoint })
})

/**
 * Listens until the scope of the layer closes, and for `drainDelay`. Then it refuses new connections, lets requests in progress finish within
 * `shutdownTimeout`, ends the streams, and closes the connections.
 *
 * @example
 * NodeHttp.layer({ port: 3000 }).pipe(Layer.provide(Server), Layer.launch)
 */
export const layer = <R = never>(options?: Options<R>): Layer.Layer<Server, TransportError, McpServer | R> =>
  Layer.effect(Server, serve(options))

/** Several processes of a server. */
export interface WorkerOptions {
  /** Their number, or `"auto"` for one for each processor that the process may use, at most 8. */
  readonly count: number | "auto"
  /**
   * Whether the server starts with parts that each worker has apart, such as the counts of a rate limit in memory: `false`
   * by default. The start fails with their names, and the stores that workers share.
   */
  readonly allowLocal?: boolean | undefined
}

/** Options of a server process. */
export interface MainOptions<R = McpServer> extends Options<R>, LogOptions {
  /**
   * Serves with several processes, so that a machine with several processors handles more requests: their number, or
   * `"auto"` for one for each processor that the process may use, at most 8. 1 by default: this process alone. Any worker
   * handles any request: they share sessions, and report changes to each other. Each worker has variables of handlers of its
   * own. With stores in memory, which they cannot share, the start fails: see {@link WorkerOptions}.
   *
   * The process that was started handles no requests. It replaces a worker that exits, and ends after 5 exits within a minute.
   * SIGTERM and SIGINT stop all workers, as one process. SIGHUP replaces them, one after the other, without refusing a
   * connection.
   *
   * @example
   * NodeHttp.runMain(Server, { port: 3000, workers: "auto" })
   */
  readonly workers?: number | "auto" | WorkerOptions | undefined
  /**
   * Runs once the server listens, instead of logging the URL, with the services of the layer. It is interrupted when the
   * process ends.
   */
  readonly onListening?: ((listening: Server["Service"]) => Effect.Effect<unknown, never, R>) | undefined
}

const announce = ({ url }: Server["Service"]): Effect.Effect<void> => Effect.logInfo(`Listening on ${url}`)

/**
 * The cause why a server was not built, for the user who started the process. If the port is taken, that is the cause:
 * usually the same server is running already, and the file or the database that the server needs is in use by it.
 */
const causeOf = <E>(
  cause: Cause.Cause<E>,
  { host = "127.0.0.1", port = 3000 }: Pick<Options, "host" | "port">,
  variable: string | undefined
) =>
  Cause.hasInterruptsOnly(cause)
    ? Effect.failCause(cause)
    : Effect.andThen(server.tryPort(port, host, variable), Effect.failCause(cause))

/** The variable that sets the port, unless the code does or no variables are read. */
const portVariable = (
  { environment = defaultPrefix, port }: Pick<MainOptions, "environment" | "port">
): string | undefined =>
  port === undefined && environment !== false ? namesOf("port", variables.port, environment)[0] : undefined

/** The failure of a server of several processes with parts that each of them has apart. */
const refuseLocal = (parts: ReadonlyArray<ProcessLocal.Part>): Effect.Effect<never, TransportError> =>
  main.invalid(
    `with workers, each process would have these parts apart:\n${
      parts.map(({ remedy, what }) => `- ${what}: ${remedy}`).join("\n")
    }\nTo start all the same, set workers: { count, allowLocal: true }`
  )

/**
 * Runs the process as an HTTP server. It logs the URL to stderr.
 *
 * - Environment variables such as `SKEIN_PORT` and `SKEIN_STATELESS` set the options that the code leaves out. `PORT` sets
 *   the port if `SKEIN_PORT` is missing. A value that is not valid is written to stderr with the name of its variable, and
 *   the exit code is 1. See `environment`.
 * - SIGTERM or SIGINT: after `drainDelay` (0 seconds) the server refuses new requests, and requests in progress may
 *   finish within `shutdownTimeout` (5 seconds). The exit code is 143 or 130. A second signal exits immediately.
 * - The server cannot be built, or cannot listen: the cause is written to stderr, and the exit code is 1. If the server
 *   cannot be built and its port is taken, the cause is the port. The message names the
 *   variable that sets the port, unless `options` has it.
 *
 * @example
 * NodeHttp.runMain(McpServer.layer({ name: "hello", version: "1.0.0" }, tools), { port: 3000 })
 */
export const runMain = <E, S, R = never>(
  mcp: Layer.Layer<McpServer | R, E> | (ServerMistake<S, McpServer> & S),
  given: MainOptions<McpServer | R> = {}
): void => {
  const options = fillIn(given, variables, process.env, given.environment)
  if (typeof options === "string") {
    const { logFormat, loggers } = given
    return main.runMain(main.invalid(options), { logFormat, loggers })
  }
  const problem = problemOfLayer(mcp)
  if (problem !== undefined) return main.runMain(main.invalid(problem), options)
  const { workers: several = 1, ...rest } = options
  const { allowLocal = false, count } = typeof several === "object" ? several : { count: several }
  if (count !== "auto" && !(Number.isSafeInteger(count) && count > 0)) {
    const expected = "expected a number from 1, or \"auto\""
    return main.runMain(main.invalid(`The option workers is ${count}: ${expected}`), options)
  }
  const own: Process<E, R> = { built: mcp as Layer.Layer<McpServer | R, E>, given, options: rest }
  if (count === 1) main.runMain(alone(own), processOf(own))
  else if (isWorker()) runWorker(own, allowLocal)
  else runPrimary(own, count)
}

/** A server process, with the options that its variables have filled in. */
interface Process<E, R> {
  readonly built: Layer.Layer<McpServer | R, E>
  readonly given: MainOptions<McpServer | R>
  readonly options: Omit<MainOptions<McpServer | R>, "workers">
}

/** The options of the process itself. The finalizers of the server run after the requests in progress, and get 5 more seconds. */
const processOf = <E, R>({ given: { environment }, options }: Process<E, R>) => {
  const { logFormat, logLevel, loggers } = options
  const { drainDelay, shutdownTimeout } = endOf(options)
  return { environment, logFormat, logLevel, loggers, shutdownTimeout: drainDelay + shutdownTimeout + 5_000 }
}

/** Builds the server and listens. `started` runs then. */
const serving = <E, R>(
  { built, given, options }: Process<E, R>,
  started: (at: Server["Service"]) => Effect.Effect<unknown, TransportError, McpServer | R>
) => {
  const program = Effect.scoped(
    Effect.flatMap(listen(options, true), (at) => Effect.andThen(started(at), Effect.never))
  )
  return Effect.catchCause(
    Effect.provide(program, built),
    (cause) => causeOf(cause, options, portVariable(given))
  )
}

/** The program of a server of one process. */
const alone = <E, R>(own: Process<E, R>) => serving(own, own.options.onListening ?? announce)

/** Whether the primary process of this library has started this one. */
const isWorker = (): boolean => process.env[workerVariable] !== undefined && process.connected === true

/** Runs the process that starts the workers, or serves itself if there is a processor for one only. */
const runPrimary = <E, R>(own: Process<E, R>, workers: number | "auto"): void => {
  const options = processOf(own)
  const { shutdownTimeout: stopTimeout } = options
  const program = Effect.flatMap(
    Effect.promise(() => import("./internal/http/workers/primary.ts")),
    ({ countOf, run }) => {
      const count = countOf(workers)
      return count === 1 ? alone(own) : run({ count, stopTimeout })
    }
  )
  // A worker that does not stop in time is killed before that.
  main.runMain(program, { ...options, shutdownTimeout: stopTimeout + 1_000 })
}

const onePort =
  "with workers, each process needs a port of its own: leave out the port of nodeRequests (SKEIN_NODE_REQUESTS_PORT)"

/** Runs a worker, which shares sessions and changes with the others. */
const runWorker = <E, R>(own: Process<E, R>, allowLocal: boolean): void => {
  delete process.env[workerVariable]
  const loaded = import("./internal/http/workers/worker.ts")
  const program = Effect.gen(function*() {
    const { onListening, ...options } = own.options
    if ((options.nodeRequests?.port ?? 0) !== 0) return yield* main.invalid(onePort)
    const { connect } = yield* Effect.promise(() => loaded)
    const { flushed, listening, services, stateKey } = yield* connect
    const parts: Array<ProcessLocal.Part> = []
    const started = Effect.fnUntraced(function*(at: Server["Service"]) {
      parts.push(...statesInMemory((yield* McpServer)[internals].catalog))
      if (parts.length > 0 && !allowLocal) return yield* refuseLocal(parts)
      listening(at.url)
      // The primary process logs the URL.
      if (onListening !== undefined) yield* onListening(at)
    })
    const shared = {
      ...own,
      built: Layer.provideMerge(own.built, services),
      options: {
        ...options,
        stateKeys: options.stateKeys ?? [stateKey],
        nodeRequests: options.nodeRequests ?? { keys: [stateKey] }
      }
    }
    return yield* Effect.provideService(
      Effect.ensuring(serving(shared, started), flushed),
      ProcessLocal.Receiver,
      (part) => void parts.push(part)
    )
  })
  main.runMain(program, processOf(own), (stop) => void loaded.then(({ onStop }) => onStop(stop)))
}

/** A server inside of an application without Effect. */
export interface Mounted {
  readonly handler: Handler
  /** Ends the requests in progress and the server. */
  readonly close: () => Promise<void>
}

/**
 * Builds a server and its handler, for an application without Effect. The application calls `close` when it ends.
 *
 * @example
 * const { handler, close } = await NodeHttp.mount(Server, { allowedHosts: ["mcp.example.com"] })
 * app.all("/mcp", handler)
 */
export const mount = <E>(mcp: Layer.Layer<McpServer, E>, options?: HandlerOptions): Promise<Mounted> =>
  Effect.runPromise(Effect.gen(function*() {
    const scope = yield* Scope.make()
    const build = Effect.flatMap(Layer.build(mcp), (context) => Effect.provideContext(handler(options), context))
    const made = yield* Effect.onError(
      Scope.provide(build, scope),
      (cause) => Scope.close(scope, Exit.failCause(cause))
    )
    return { handler: made, close: () => Effect.runPromise(Scope.close(scope, Exit.void)) }
  }))
