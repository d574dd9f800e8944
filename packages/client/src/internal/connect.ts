/**
 * Opens the connection, negotiates, and puts the client together.
 */
import { ServerCapabilities } from "@skein/protocol/Capabilities"
import * as Codec from "@skein/protocol/Codec"
import { Implementation } from "@skein/protocol/Common"
import type { JsonObject } from "@skein/protocol/JsonRpc"
import * as McpError from "@skein/protocol/McpError"
import * as Method from "@skein/protocol/Method"
import * as RequestMeta from "@skein/protocol/RequestMeta"
import * as Revision from "@skein/protocol/Revision"
import type { Transport } from "@skein/runtime/Connection"
import type { Dispatcher } from "@skein/runtime/Exchange"
import * as Peer from "@skein/runtime/Peer"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Result from "effect/Result"
import * as Scope from "effect/Scope"
import type { CallTool, Client, Options, PageOptions, RequestOptions, TypedCallOptions } from "../Client.ts"
import { ClientError } from "../ClientError.ts"
import * as Notification from "../Notification.ts"
import { call, type Line, refusal } from "./calls.ts"
import { guard } from "./guard.ts"
import { type Agreement, initialize, mayInitialize, probe, probes, type Settings } from "./handshake.ts"
import { Notices } from "./notices.ts"
import * as Output from "./output.ts"
import { walk } from "./pages.ts"

const defaultInfo: Implementation = { name: "skein", version: "0.1.0" }

/** Answers the requests of the server. What this client does not declare it does not have. */
const dispatch: Dispatcher = (exchange) =>
  exchange.method === "ping" ? Effect.succeed({}) : Effect.fail(McpError.methodNotFound(exchange.method))

const settingsOf = (options: Options): Settings => {
  const clientInfo = options.info ?? defaultInfo
  return {
    revisions: Revision.all.filter((revision) => options.revisions?.includes(revision) ?? true),
    probeTimeout: options.probeTimeout ?? "3 seconds",
    stamp: (protocolVersion, logLevel) =>
      RequestMeta.stamper({ protocolVersion, clientInfo, clientCapabilities: {}, logLevel }),
    introduction: (protocolVersion) => {
      const params = { protocolVersion, capabilities: {}, clientInfo }
      return Result.getOrElse(Codec.encodeParams(Method.Initialize, protocolVersion, params), () => params)
    }
  }
}

type Handshake = (peer: Peer.Peer, settings: Settings) => Effect.Effect<Agreement, ClientError, Scope.Scope>

interface Opened {
  readonly peer: Peer.Peer
  readonly agreement: Agreement
  readonly notices: Notices<Notification.Notification>
  /** Logs a warning, from where no effect runs. */
  readonly warn: (...message: ReadonlyArray<unknown>) => void
}

/** One connection and its handshake, in a scope of its own, so that a failed one is closed before the next is opened. */
const attempt = (
  transport: Transport,
  options: Options,
  settings: Settings,
  handshake: Handshake
): Effect.Effect<Opened, ClientError, Scope.Scope> =>
  Effect.gen(function*() {
    const scope = yield* Scope.fork(yield* Effect.scope)
    const fork = Effect.runForkWith(yield* Effect.context<never>())
    const warn: Opened["warn"] = (...message) => void fork(Effect.logWarning(...message))
    const notices = new Notices<Notification.Notification>(options.notificationBuffer ?? 256)
    let revision: Revision.Revision | undefined
    const opening = Effect.gen(function*() {
      const connection = yield* Effect.mapError(transport.connect, (cause) =>
        new ClientError({ reason: "Open", message: cause.message, cause }))
      const peer = yield* Peer.make({
        connection: guard(connection, {
          get revision() {
            return revision
          },
          dropped: (what) =>
            warn(`The server sends what it must not, and it is ignored: ${what}`)
        }),
        dispatch,
        identify: ({ session }) => ({
          revision: session?.revision ?? Revision.latestSession,
          info: session?.info,
          capabilities: session?.capabilities ?? {},
          session
        }),
        onNotification: (_, message) => {
          if (revision === undefined || !notices.listened) return
          const decoded = Notification.decode(message, revision)
          if (Result.isSuccess(decoded)) return notices.tell(decoded.success)
          return Effect.logWarning(`${message.method} was dropped: ${decoded.failure}`)
        },
        limits: options.limits
      })
      const agreement = yield* handshake(peer, settings)
      revision = agreement.revision
      yield* Effect.forkScoped(Effect.ensuring(peer.ended, Effect.sync(() => notices.end())))
      return { peer, agreement, notices, warn }
    })
    return yield* opening.pipe(
      Scope.provide(scope),
      Effect.onError((cause) => Scope.close(scope, Exit.failCause(cause)))
    )
  })

/** What a server declared, without the members that are malformed: they never hurt. */
const readCapabilities = (raw: JsonObject, revision: Revision.Revision): ServerCapabilities => {
  const whole = Codec.decode(ServerCapabilities, revision, raw)
  if (Result.isSuccess(whole)) return whole.success
  const sound = Object.entries(raw).filter(([key, value]) =>
    Result.isSuccess(Codec.decode(ServerCapabilities, revision, { [key]: value }))
  )
  return Object.fromEntries(sound)
}

const assemble = (opened: Opened, options: Options, settings: Settings): Client => {
  const { agreement: { capabilities, info, instructions, revision }, notices, peer, warn } = opened
  const modern = Revision.era(revision) === "request"
  const bounds = { maxPages: options.maxPages ?? 1_000, maxItems: options.maxItems ?? 10_000 }
  let stamp: Line["stamp"] = modern ? settings.stamp(revision) : (params) => params
  const line: Line = {
    peer,
    revision,
    capabilities,
    enforceCapabilities: options.enforceCapabilities ?? true,
    stamp: (params) => stamp(params),
    warn
  }
  const request: Client["request"] = (method, params, options) => call(line, method, params, options)

  const page = <R>(method: Method.RequestMethod<{ readonly cursor?: string }, R>) => (options: PageOptions = {}) =>
    request(method, options.cursor === undefined ? {} : { cursor: options.cursor }, options)
  const all = <R extends { readonly nextCursor?: string }, A>(
    method: Method.RequestMethod<{ readonly cursor?: string }, R>,
    items: (page: R) => ReadonlyArray<A>
  ) => walk(method.name, bounds, (cursor) => page(method)({ cursor }), items)

  const callTool = <A, RD>(
    name: string,
    args?: JsonObject,
    options: RequestOptions | TypedCallOptions<A, RD> = {}
  ) => {
    const params = args === undefined ? { name } : { name, arguments: args }
    const called = request(Method.CallTool, params, options)
    return "output" in options
      ? Effect.flatMap(called, (result) => Output.decode(name, result, options.output))
      : called
  }

  return {
    revision,
    era: Revision.era(revision),
    server: info === undefined ? undefined : Result.getOrUndefined(Codec.decode(Implementation, revision, info)),
    capabilities: readCapabilities(capabilities, revision),
    instructions,
    listTools: page(Method.ListTools),
    allTools: all(Method.ListTools, ({ tools }) => tools),
    callTool: callTool as CallTool,
    listResources: page(Method.ListResources),
    allResources: all(Method.ListResources, ({ resources }) => resources),
    listResourceTemplates: page(Method.ListResourceTemplates),
    allResourceTemplates: all(Method.ListResourceTemplates, ({ resourceTemplates }) => resourceTemplates),
    readResource: (uri, options) => request(Method.ReadResource, { uri }, options),
    listPrompts: page(Method.ListPrompts),
    allPrompts: all(Method.ListPrompts, ({ prompts }) => prompts),
    getPrompt: (name, args, options) =>
      request(Method.GetPrompt, args === undefined ? { name } : { name, arguments: args }, options),
    complete: (ref, argument, known, options) =>
      request(
        Method.Complete,
        known === undefined ? { ref, argument } : { ref, argument, context: { arguments: known } },
        options
      ),
    ping: Effect.asVoid(modern ? request(Method.Discover, {}) : request(Method.Ping, {})),
    setLoggingLevel: (level, options) =>
      modern
        ? Effect.suspend(() => {
          const refused = refusal(line, { ...Method.SetLevel, until: undefined })
          if (refused !== undefined) return Effect.fail(refused)
          stamp = settings.stamp(revision, level)
          return Effect.void
        })
        : Effect.asVoid(request(Method.SetLevel, { level }, options)),
    request,
    notifications: notices.stream,
    ended: peer.ended,
    peer
  }
}

/** See `Client.make`. */
export const connect = (transport: Transport, options: Options): Effect.Effect<Client, ClientError, Scope.Scope> =>
  Effect.gen(function*() {
    const settings = settingsOf(options)
    if (settings.revisions.length === 0) {
      return yield* new ClientError({ reason: "Negotiation", message: "The option `revisions` names no revision" })
    }
    const open = (handshake: Handshake) => attempt(transport, options, settings, handshake)
    if (!probes(settings)) return assemble(yield* open(initialize), options, settings)
    const probed = open(probe)
    // Some servers of the session era exit when they get a request before `initialize`.
    const opened = mayInitialize(settings)
      ? Effect.catchIf(probed, (error) => error.reason === "Closed", () => open(initialize))
      : probed
    return assemble(yield* opened, options, settings)
  })
