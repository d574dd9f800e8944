/**
 * The operator's view of a running server: its sessions, requests, tasks, streams and subscriptions as a live tree, with
 * what each waits for, its age, progress, principal and trace id. It can interrupt requests and close sessions. With
 * `workers` (`NodeHttp.runMain`) it shows all of them, at any one.
 *
 * A console costs nothing without viewers. It shows no arguments and no results, unless `showPayloads` is set. `skein
 * top <url>` shows the same in a terminal.
 *
 * @example
 * const Program = Layer.mergeAll(NodeHttp.layer({ port: 3000 }), Console.layer({ port: 3001 })).pipe(Layer.provide(Server))
 */
import { isLoopback } from "@skein/protocol/Hostname"
import * as Digest from "@skein/runtime/Digest"
import * as RandomId from "@skein/runtime/RandomId"
import type { TransportError } from "@skein/runtime/TransportError"
import * as AuthenticationFailures from "@skein/server/AuthenticationFailures"
import { type FindPrincipal, type Pages, type Protection, Refusal } from "@skein/server/Http"
import { McpServer } from "@skein/server/McpServer"
import * as NodePages from "@skein/server/NodePages"
import { Workers } from "@skein/runtime/Workers"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Scope from "effect/Scope"
import { ConsoleError, Unprotected } from "./ConsoleError.ts"
import { ConsoleSources } from "./ConsoleSource.ts"
import { FixedBounds } from "./internal/bounds.ts"
import { Feed } from "./internal/feed.ts"
import { version } from "./internal/messages.ts"
import { makeRoutes } from "./internal/routes.ts"
import { makeServerSource } from "./internal/serverSource.ts"
import { readTree } from "./internal/tree.ts"
import * as workerSources from "./internal/workerSources.ts"

/** Finds the principal of a viewer: a function, or the protection of an endpoint (`Protect.make` of `@skein/auth`). */
export type Protect = FindPrincipal | Protection | Effect.Effect<Protection>

/** Options of a console, on any port or path. */
export interface ViewOptions {
  /**
   * Whether viewers see the arguments of requests, and the payloads that sources show of their nodes: data of users. False
   * by default.
   */
  readonly showPayloads?: boolean | undefined
  /**
   * Full origins (`https://ops.example.com`) whose pages may use the console besides its own page, which a proxy that
   * changes `Host` makes necessary. None by default.
   */
  readonly allowedOrigins?: ReadonlyArray<string> | undefined
}

/** Options of a console on a port of its own. */
export interface Options extends ViewOptions, Pick<NodePages.Options, "allowedHosts" | "trustedProxies"> {
  /** The port: 3001 by default, 0 for any free port. */
  readonly port?: number | undefined
  /** The address to listen on: `127.0.0.1` by default. Any other address but loopback needs `protect`. */
  readonly host?: string | undefined
  /**
   * Finds the principal of each request: `Console.password`, a function that refuses with `Http.Refusal`, or
   * `Protect.make` of `@skein/auth`. A request without a principal is answered with 401. On loopback none is needed: there
   * every user of the machine can use the console.
   */
  readonly protect?: Protect | undefined
}

/** Options of a console on a path of an endpoint. */
export interface PagesOptions extends ViewOptions {
  /** The path: `/console` by default. */
  readonly path?: string | undefined
  /** Finds the principal of each request: see `Options`. It is required, since others reach the endpoint. */
  readonly protect: Protect
}

/** A listening console. */
export class Server extends Context.Service<Server, {
  readonly host: string
  readonly port: number
  /** The address of the page. */
  readonly url: string
  /** The number of viewers that are connected. */
  readonly viewers: Effect.Effect<number>
}>()("@skein/console/Server") {}

const findPrincipal = (protect: Protect | undefined): Effect.Effect<FindPrincipal | undefined> =>
  protect === undefined || typeof protect === "function"
    ? Effect.succeed(protect)
    : Effect.map(Effect.isEffect(protect) ? protect : Effect.succeed(protect), ({ identify }) => identify)

/** `name` names the console among those of a program. */
const make = (
  name: string,
  base: string,
  options: ViewOptions & { readonly protect?: Protect | undefined }
): Effect.Effect<{ readonly pages: Pages; readonly feed: Feed }, never, McpServer | Scope.Scope> =>
  Effect.gen(function*() {
    const server = yield* McpServer
    const sources = Option.getOrUndefined(yield* Effect.serviceOption(ConsoleSources))
    const scope = yield* Effect.scope
    const context = yield* Effect.map(
      Effect.context<McpServer | Scope.Scope>(),
      (context): Context.Context<never> => Context.omit(Scope.Scope, Layer.CurrentMemoMap)(context)
    )
    const { showPayloads = false } = options
    const fixed = yield* FixedBounds
    const { interval, maxPayloadChars, maxRowsPerMessage, maxViewers } = fixed
    const bounds = { ...fixed, showPayloads }
    const own = makeServerSource(server, maxPayloadChars)
    const ofProcess = () => [own, ...sources?.all.values() ?? []]
    const workers = Option.getOrUndefined(yield* Effect.serviceOption(Workers))
    const join = workers && (yield* workerSources.make(workers, `console ${name}`, ofProcess))
    const all = () => join === undefined ? ofProcess() : ofProcess().map(join)
    const read = Effect.suspend(() => readTree(all(), bounds))
    // A viewer of workers may reach another one with each request.
    const hello = { version, instance: workers?.instance ?? RandomId.make(12), interval, showPayloads }
    const feed = new Feed({ read, hello, maxViewers, maxRowsPerMessage, scope, context })
    yield* Effect.addFinalizer(() => Effect.sync(() => feed.close()))
    const protect = yield* findPrincipal(options.protect)
    const pages = makeRoutes(base, {
      feed,
      hello,
      bounds,
      read,
      sources: all,
      protect,
      allowedOrigins: options.allowedOrigins ?? []
    })
    return { pages, feed }
  })

/**
 * A console on a path of an endpoint: the value of the option `pages` of every HTTP adapter. Requests pass the checks of
 * Host and Origin of the endpoint, and `protect`.
 *
 * @example
 * NodeHttp.layer({ pages: Console.pages({ protect: Console.password(secret) }) })
 */
export const pages = (options: PagesOptions): Effect.Effect<Pages, never, McpServer | Scope.Scope> =>
  Effect.suspend(() => {
    const base = (options.path ?? "/console").replace(/\/+$/, "")
    return Effect.map(make(base, base, options), ({ pages }) => pages)
  })

/**
 * A console on a port of its own, until the scope of the layer closes. Fails with `ConsoleError` if the address is not
 * loopback and `protect` is missing, and with `TransportError` if it cannot listen.
 *
 * @example
 * const Operated = Console.layer({ port: 3001 }).pipe(Layer.provide(Server))
 */
export const layer = (options: Options = {}): Layer.Layer<Server, ConsoleError | TransportError, McpServer> =>
  Layer.effect(
    Server,
    Effect.gen(function*() {
      const { host = "127.0.0.1", port = 3001, protect } = options
      if (protect === undefined && !isLoopback(host)) {
        const message = `The console is not started on ${host}: everybody who reaches it could interrupt requests. ` +
          "Set protect, for example to Console.password(secret), or leave host at 127.0.0.1"
        return yield* new ConsoleError({ reason: new Unprotected({ message, host }) })
      }
      const { feed, pages } = yield* make(String(port), "", options)
      const { maxConnections } = yield* FixedBounds
      const listening = yield* NodePages.serve(pages, {
        host,
        port,
        allowedHosts: options.allowedHosts,
        // The console compares the origin with its own. Here only those of loopback would pass.
        allowedOrigins: "any",
        trustedProxies: options.trustedProxies,
        limits: { maxConnections }
      })
      return { ...listening, viewers: Effect.sync(() => feed.viewers) }
    })
  )

const challenge = { "www-authenticate": "Basic realm=\"console\", charset=\"UTF-8\"" }

/**
 * Protects a console by a password, which browsers ask for (HTTP Basic, with any user name), and which `skein top` sends
 * with `--password`. The user name becomes the principal in the log. Put TLS in front of the console on other addresses
 * than loopback: the password is sent with each request.
 *
 * Wrong passwords are counted by the network address of their sender, as `Protect` counts wrong tokens: after
 * `maxFailures` in 10 seconds (20 by default) all requests of the address are answered with 429, also those with the right
 * password, so that a guess has no answer. A request without a password is not counted. Behind a proxy, set
 * `trustedProxies`: otherwise all viewers share the address of the proxy.
 *
 * @example
 * Console.layer({ host: "0.0.0.0", allowedHosts: ["ops.example.com"], protect: Console.password(secret) })
 */
export const password = (
  secret: string | Redacted.Redacted<string>,
  options: AuthenticationFailures.FailureOptions = {}
): FindPrincipal => {
  const expected = typeof secret === "string" ? Redacted.make(secret) : secret
  if (Redacted.value(expected) === "") throw new TypeError("The password of a console must not be empty")
  const refused = Effect.fail(
    new Refusal({ status: 401, message: "Unauthorized: the console needs its password", headers: challenge })
  )
  let made: AuthenticationFailures.Failures | undefined
  return (request) => {
    const authorization = request.header("authorization")
    if (authorization === undefined) return refused
    const { address } = request
    const check = (failures: AuthenticationFailures.Failures) =>
      Effect.gen(function*() {
        const seconds = failures.retryAfter(address)
        if (seconds !== undefined) return yield* AuthenticationFailures.tooManyFailures(seconds)
        const [, encoded = ""] = /^Basic ([A-Za-z0-9+/=]+)$/i.exec(authorization) ?? []
        const given = new TextDecoder().decode(Uint8Array.from(decodeBase64(encoded), (char) => char.charCodeAt(0)))
        const colon = given.indexOf(":")
        // Digests are compared, so that the time of the comparison depends on nothing secret.
        const ours = yield* Digest.sha256Base64Url(Redacted.value(expected))
        const theirs = yield* Digest.sha256Base64Url(given.slice(colon + 1))
        if (colon === -1 || ours !== theirs) {
          failures.add(address)
          return yield* refused
        }
        return { id: colon === 0 ? "operator" : given.slice(0, colon) }
      })
    return Effect.gen(function*() {
      made ??= yield* AuthenticationFailures.make(options)
      const failures = made
      // A client that disconnects before the answer has failed, as at `Protect`.
      const counted = Effect.onInterrupt(check(failures), () => Effect.sync(() => failures.add(address)))
      return yield* failures.limit(address, counted)
    })
  }
}

const decodeBase64 = (text: string): string => {
  try {
    return atob(text)
  } catch {
    return ""
  }
}
