/**
 * The options of a proxy, and those of `@skein/gateway` that they are converted to.
 */
import { transportTo } from "@skein/client/AsyncClient"
import * as Client from "@skein/client/Client"
import * as Core from "@skein/gateway/Proxy"
import * as AsyncHandler from "@skein/server/AsyncHandler"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Prompt, Resource, ResourceTemplate, Tool } from "../base/messages.ts"
import type { Awaitable, Duration } from "../base/types.ts"
import type { Server } from "../client/asyncClient.ts"
import type { ClientOptions, ReconnectPolicy } from "../client/options.ts"
import type { Caller } from "../server/request.ts"

/** Which definitions are taken over: all, none, or those that a function selects. */
export type ProxySelection<A> = boolean | ((definition: A) => boolean)

/** The lists of a remote server. */
export interface ProxyLists {
  readonly tools: ReadonlyArray<Tool>
  readonly resources: ReadonlyArray<Resource>
  readonly resourceTemplates: ReadonlyArray<ResourceTemplate>
  readonly prompts: ReadonlyArray<Prompt>
}

/** Connections of principals or sessions to a remote server. */
export interface ProxyConnections {
  /**
   * Whose connections they are. A request without a session (2026-07-28) has that of its principal. With `call` one call at a
   * time uses a connection.
   */
  readonly per: "principal" | "session" | "call"
  /**
   * Returns the server for a caller, with the credentials that you choose. If it throws, the call fails: the caller sees the
   * message of a `VisibleError`, as that of a tool's handler, and of other errors a reference.
   */
  readonly server: (caller: Caller) => Awaitable<Server>
  /** How many may be open: 100 by default; one client has three quarters at most. Then an unused one is closed. */
  readonly maxConnections?: number | undefined
  /** How long an unused one stays open: 5 minutes by default. */
  readonly idleTimeout?: Duration | undefined
}

/** The options of a proxy. */
export interface ProxyOptions {
  /** The name of the remote server in messages. Default: the `label` of the client. */
  readonly label?: string | undefined
  /** The options of its clients: timeouts, reconnecting, the name that they send. */
  readonly client?: ClientOptions | undefined
  /** Which tools are taken over: all by default. A function receives the definition of the remote server. */
  readonly tools?: ProxySelection<Tool> | undefined
  /** Which resources are taken over: all by default. */
  readonly resources?: ProxySelection<Resource> | undefined
  /** Which resource templates are taken over: all by default. */
  readonly resourceTemplates?: ProxySelection<ResourceTemplate> | undefined
  /**
   * Which URIs can be read although no list has them, such as those of links in results. Default: all if `resources` and
   * `resourceTemplates` are not restricted, and none otherwise.
   */
  readonly unlistedResources?: boolean | ((uri: string) => boolean) | undefined
  /** Which prompts are taken over: all by default. */
  readonly prompts?: ProxySelection<Prompt> | undefined
  /** The bounds of the proxy. */
  readonly limits?: {
    /** How many entries of each kind are taken over: 1,000 by default. Further ones are left out, with a warning. */
    readonly maxEntries?: number | undefined
    /** How many calls of stateless callers may wait for answers: 1,000 by default; one client has a tenth at most. */
    readonly maxWaiting?: number | undefined
    /** How long such a call waits: 10 minutes by default. Then it is cancelled. */
    readonly waitTimeout?: Duration | undefined
  } | undefined
  /**
   * Whose connections calls use. By default (`auto`) all callers share the one that also lists, until the remote server asks a
   * caller over stdio, where a question does not name its request: then each session has its own. `shared` never changes. The
   * token of the caller is never passed on: for connections of single users choose one for the remote server.
   *
   * @example
   * connections: { per: "principal", server: async ({ principal }) => ({ url, credentials: bearer(await tokenOf(principal)) }) }
   */
  readonly connections?: "auto" | "shared" | ProxyConnections | undefined
  /** The lists while the remote server cannot be reached: the last ones (`last`, the default), or `nothing`. */
  readonly whileDown?: "last" | "nothing" | undefined
  /** The lists at the start if the remote server cannot be reached then: empty by default. */
  readonly initial?: ProxyLists | undefined
  /** Receives the lists after each change, to store them for `initial`. An error that it throws is logged. */
  readonly onListing?: ((lists: ProxyLists) => Awaitable<void>) | undefined
  /** How long the start of the server waits for the lists: 10 seconds by default. Then it starts without them. */
  readonly readyTimeout?: Duration | undefined
  /** The pauses before a new client after one that has ended or could not connect. `maxAttempts` is ignored. */
  readonly reconnect?: ReconnectPolicy | undefined
}

const clientOf = (server: () => Awaitable<Server>, options: ClientOptions | undefined) =>
  Effect.flatMap(
    AsyncHandler.attempt(async () => transportTo(await server() as never)),
    (transport) => Client.make(transport, options as Client.Options)
  )

/** The options of the proxy itself. */
export const coreOptions = (
  { client, connections, onListing, ...options }: ProxyOptions
): Core.Options<Scope.Scope> => ({
  ...options as Core.Options,
  ...(typeof connections === "string" && { connections }),
  ...(typeof connections === "object" && {
    connections: { principal: Core.perPrincipal, session: Core.perSession, call: Core.perCall }[connections.per](
      (caller) => clientOf(() => connections.server(caller as Caller), client),
      connections as Core.ConnectionOptions
    )
  }),
  ...(onListing && {
    onListing: (lists) =>
      Effect.catchCause(
        Effect.promise(async () => onListing(lists as ProxyLists)),
        (cause) => Effect.logWarning("onListing has thrown an error", cause)
      )
  })
})
