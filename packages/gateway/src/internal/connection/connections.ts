/**
 * The connections to a remote server: one for all callers, or one for each session or principal.
 */
import type { Client } from "@skein/client/Client"
import { ClientError } from "@skein/client/ClientError"
import * as CanonicalJson from "@skein/protocol/CanonicalJson"
import { LoggingLevel } from "@skein/protocol/Logging"
import type * as McpError from "@skein/protocol/McpError"
import * as Revision from "@skein/protocol/Revision"
import * as ClientKey from "@skein/runtime/ClientKey"
import { KeyedCounter } from "@skein/runtime/KeyedCounter"
import type { Caller, RequestContext, SessionPeer } from "@skein/runtime/RequestContext"
import * as Catalog from "@skein/server/Catalog"
import * as Extension from "@skein/server/Extension"
import type { HandlerError } from "@skein/server/HandlerError"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import * as Scope from "effect/Scope"
import type { ForwardedRequest } from "./forwardedRequest.ts"
import { type Declared, declaredBy, makeRelay, type Relay } from "./relay.ts"
import { failVisibly, named, remoteError, type RemoteName, toMcpError, upper } from "./remoteError.ts"

/** A connection to the remote server. */
export interface RemoteConnection {
  readonly client: Client
  readonly relay: Relay
  /** Sets the log level of the remote server, if the caller wants more than the callers before. */
  readonly requestLogs: (level: string | undefined) => Effect.Effect<void>
}

/**
 * Lends connections to the remote server to calls. The second argument is the connection on which the request was not
 * sent, because it has ended.
 */
export type Connect = (
  request: RequestContext,
  ended?: RemoteConnection
) => Effect.Effect<RemoteConnection, McpError.McpError, Scope.Scope>

/** Makes a client that a scope closes. */
export type MakeClient<E = ClientError> = Effect.Effect<Client, E, Scope.Scope>

/** The services that connections need. */
export interface Environment {
  readonly catalog: Catalog.Catalog["Service"]
  readonly name: RemoteName
  /** Closes with the proxy. */
  readonly scope: Scope.Scope
  /** Runs an effect in the scope. */
  readonly run: (effect: Effect.Effect<void>) => Fiber.Fiber<void>
  /** Runs when the remote server asks without naming the request, with that of the only caller, if there is one. */
  readonly unnamed: (request: ForwardedRequest | undefined) => void
}

const rank = Object.fromEntries(LoggingLevel.literals.map((level, at) => [level, at])) as Record<string, number>

/** Wraps a client. Its log level follows the callers: it is lowered for a caller that wants more, and never raised. */
export const connectionOf = (client: Client, relay: Relay): RemoteConnection => {
  let current: string | undefined
  return {
    client,
    relay,
    requestLogs: (level) => {
      if (
        level === undefined || client.era === "stateless" || client.capabilities.logging === undefined ||
        (current !== undefined && rank[level]! >= rank[current]!)
      ) return Effect.void
      current = level
      return Effect.ignore(client.setLoggingLevel(level as LoggingLevel))
    }
  }
}

/** Opens a connection whose input requests and notifications are passed on to callers. The scope closes it. */
export const open = <E>(
  make: MakeClient<E>,
  declared: Declared,
  { catalog, name, run, unnamed }: Environment
): Effect.Effect<RemoteConnection, E, Scope.Scope> => {
  const relay = makeRelay(catalog, run, unnamed)
  const services = relay.services(declared)
  return Effect.map(
    Effect.updateContext(make, (context: Context.Context<Scope.Scope>) => Context.merge(context, services)),
    (client) => {
      name.label ??= client.label
      return connectionOf(client, relay)
    }
  )
}

/** Whether a request belongs to no session of the caller. */
export const isStateless = ({ caller, peer }: RequestContext): boolean =>
  peer === undefined || Revision.era(caller.revision) === "stateless"

/** Whose connections a proxy uses. */
export interface PoolSettings {
  readonly per: "principal" | "session" | "call"
  /**
   * Whether one request at a time uses a connection, except for those of one session: the transport may not show which request a
   * question belongs to. The next one of the same principal uses the connection after it.
   */
  readonly isExclusive: boolean
  readonly make: (caller: Caller) => MakeClient<ClientError | HandlerError>
  /** The capabilities that a caller's connection declares to the remote server. */
  readonly declare: (caller: Caller) => Declared
  readonly maxConnections: number
  /** In milliseconds. */
  readonly idleTimeout: number
}

interface Pooled {
  readonly key: string
  readonly scope: Scope.Closeable
  readonly ready: Deferred.Deferred<RemoteConnection, ClientError | HandlerError>
  /** The connection, once it is open. */
  connection: RemoteConnection | undefined
  /** The number of requests that use it now. */
  users: number
  idle: Fiber.Fiber<void> | undefined
  /** The key of the client that it was opened for. */
  readonly client: string | undefined
}

/** The part of the connections that one client may have, so that the others get some too. */
const clientShare = 0.75

/** The connections of single callers. */
export interface Pool {
  /** Lends a request the connection of its session or principal, which is opened with its first request. */
  readonly connect: Connect
  /** The number of connections now. */
  readonly size: () => number
}

/** Makes the connections of single callers. */
export const makePool = (settings: PoolSettings, environment: Environment): Pool => {
  const { declare, idleTimeout, isExclusive, make, maxConnections, per } = settings
  const { catalog, name, run } = environment
  const maxPerClient = Math.max(1, Math.floor(maxConnections * clientShare))
  /** By key, the least recently used first. */
  const all = new Map<string, Pooled>()
  /** Their numbers by client. */
  const counts = new KeyedCounter()
  const sessions = new WeakMap<SessionPeer, string>()
  let lastSession = 0

  /**
   * The key of a connection. Callers of one principal with other capabilities have another connection, since it declares
   * them to the remote server.
   */
  const keyOf = (request: RequestContext): Effect.Effect<string> => {
    const { caller, peer } = request
    if (per !== "session" || peer === undefined || isStateless(request)) {
      return Effect.sync(() => {
        const key = CanonicalJson.stringify([caller.principal?.id ?? null, declaredBy(caller)])
        return isExclusive ? freeKey(key) : key
      })
    }
    const known = sessions.get(peer)
    if (known !== undefined) return Effect.succeed(known)
    const key = `session ${++lastSession}`
    sessions.set(peer, key)
    // The connection of a session ends with the session. The end of a child process may take seconds, for which neither
    // the client nor the other connections wait.
    const end = Effect.sync(() => {
      const pooled = all.get(key)
      if (pooled !== undefined) run(close(pooled))
    })
    const session = Effect.provideService(Extension.session(caller), Catalog.Catalog, catalog)
    return Effect.as(
      Effect.flatMap(session, (scope) => scope === undefined ? Effect.void : Scope.addFinalizer(scope, end)),
      key
    )
  }

  /** The key of the first connection of a caller that no request uses, or of a new one. */
  const freeKey = (key: string): string => {
    for (let number = 1;; number++) {
      const numbered = `${key} ${number}`
      if ((all.get(numbered)?.users ?? 0) === 0) return numbered
    }
  }

  /** Opens a connection. Returns why it may not be opened: all connections are in use, or all that the client may have. */
  const add = (key: string, request: RequestContext): Pooled | string => {
    const { caller } = request
    const client = ClientKey.ofRequest(request)
    const hasShare = counts.of(client) >= maxPerClient
    if (hasShare || all.size >= maxConnections) {
      const unused = [...all.values()].find(({ client: other, users }) =>
        users === 0 && (!hasShare || other === client)
      )
      if (unused === undefined) {
        return hasShare
          ? `This client uses ${maxPerClient} connections to ${named(name)}, all that one client may have ` +
            `(three quarters of maxConnections). Try again later`
          : `${upper(named(name))} has ${maxConnections} connections in use (maxConnections). Try again later`
      }
      run(close(unused))
    }
    const scope = Scope.forkUnsafe(environment.scope)
    const ready = Deferred.makeUnsafe<RemoteConnection, ClientError | HandlerError>()
    const pooled: Pooled = { key, scope, ready, connection: undefined, users: 0, idle: undefined, client }
    all.set(key, pooled)
    counts.add(client, 1)
    const opening = open(Effect.suspend(() => make(caller)), declare(caller), environment).pipe(
      Scope.provide(scope),
      Effect.tap((connection) =>
        Effect.sync(() => {
          pooled.connection = connection
        })
      ),
      Effect.onExit((exit) => Deferred.done(ready, exit)),
      // The client has ended for good: the next request opens another one.
      Effect.flatMap(({ client }) => client.ended),
      // A defect too: a function of the application may have thrown.
      Effect.ignoreCause,
      Effect.andThen(Effect.suspend(() => close(pooled)))
    )
    run(opening)
    return pooled
  }

  /** Takes a connection for a request. Returns why there is none. */
  const take = (key: string, request: RequestContext, ended: RemoteConnection | undefined): Pooled | string => {
    const known = all.get(key)
    const isUsable = known !== undefined && (ended === undefined || known.connection !== ended)
    if (known !== undefined && !isUsable) run(close(known))
    const pooled = isUsable ? known : add(key, request)
    if (typeof pooled === "string") return pooled
    pooled.users++
    pooled.idle?.interruptUnsafe()
    pooled.idle = undefined
    // It is closed already if it failed at once.
    if (all.delete(key)) all.set(key, pooled)
    return pooled
  }

  const release = (pooled: Pooled): Effect.Effect<void> =>
    Effect.sync(() => {
      if (--pooled.users > 0 || all.get(pooled.key) !== pooled) return
      pooled.idle = run(Effect.andThen(Effect.sleep(idleTimeout), Effect.suspend(() => close(pooled))))
    })

  const close = (pooled: Pooled): Effect.Effect<void> => {
    if (all.get(pooled.key) === pooled) {
      all.delete(pooled.key)
      counts.release(pooled.client)
    }
    // Where it runs in a fiber of its own, the end of the proxy waits for it.
    return Effect.uninterruptible(Scope.close(pooled.scope, Exit.void))
  }

  const connect: Connect = (request, ended) => {
    const taken = Effect.flatMap(keyOf(request), (key) => {
      const pooled = take(key, request, ended)
      return typeof pooled === "string"
        ? Effect.fail(remoteError("TooManyConnections", pooled))
        : Effect.succeed(pooled)
    })
    return Effect.flatMap(
      Effect.acquireRelease(taken, release),
      ({ ready }) =>
        Effect.catch(
          Deferred.await(ready),
          (error) => error instanceof ClientError ? Effect.fail(toMcpError(error, name)) : failVisibly(error)
        )
    )
  }

  return { connect, size: () => all.size }
}
