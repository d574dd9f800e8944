/**
 * The servers behind a gateway: each is a mounted proxy in a scope of its own, which is added, replaced and removed while the
 * gateway runs.
 */
import * as Clients from "@skein/client/Client"
import { ClientError, Timeout } from "@skein/client/ClientError"
import { DuplicateName, LimitExceeded, PoolError, ServerNotFound } from "@skein/client/PoolError"
import type { StdioConnection } from "@skein/client/Stdio"
import { quote } from "@skein/protocol/Text"
import type { Connection, Transport } from "@skein/runtime/Connection"
import type * as Catalog from "@skein/server/Catalog"
import * as McpServer from "@skein/server/McpServer"
import * as Transform from "@skein/server/Transform"
import * as Cause from "effect/Cause"
import type * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import * as Proxy from "../../Proxy.ts"
import { ProxyStates } from "../connection/proxyState.ts"
import { type Members, patternOf } from "./members.ts"
import { nameOf, prefixOf } from "./names.ts"

/** A server behind a gateway: its transport, the options of its client, and how the gateway offers it. */
export interface Server {
  readonly transport: Transport
  /** The options of its client. */
  readonly client?: Clients.Options | undefined
  /** How the gateway offers it: the members of `gateway` in the entry of a configuration. */
  readonly gateway?: Members | undefined
  /** How long an attempt to open it may take: that of `ClientPool.Options` by default. */
  readonly timeout?: Duration.Input | undefined
}

/** A process of a server. */
export interface ServerProcess {
  readonly pid: number
  /** The captured end of its stderr: 8 Ki characters at most. */
  readonly stderr: string
}

/** The state of a server behind a gateway. */
export interface ServerState extends Proxy.State {
  /** The name of the server in the configuration. */
  readonly name: string
  /** The prefix of its names and URIs: empty if they are as the server has them. */
  readonly prefix: string
  /** Whether the gateway is ready only while this server is connected. */
  readonly required: boolean
  /** Its processes now, if the gateway starts it. */
  readonly processes: ReadonlyArray<ServerProcess>
  /** The end of the stderr of the process that ended last; undefined if none has ended. */
  readonly lastStderr: string | undefined
}

interface Part {
  readonly name: string
  readonly server: Server
  readonly prefix: string
  readonly at: number
  readonly required: boolean
  readonly scope: Scope.Closeable
  readonly states: Set<() => Proxy.State>
  readonly processes: Set<StdioConnection>
  lastStderr: string | undefined
}

const isOfProcess = (connection: Connection): connection is StdioConnection =>
  "pid" in connection && "stderr" in connection

/** The settings of the parts. */
export interface Settings<R> {
  readonly build: Catalog.Places
  readonly services: Context.Context<R>
  /** The scope of the gateway. */
  readonly scope: Scope.Scope
  readonly prefix: ((server: string) => string | undefined) | undefined
  readonly proxy: ((server: string) => Proxy.Options<R>) | undefined
  readonly maxServers: number
}

/** The distance between the places of two servers: others can be added between them. */
const distance = 2 ** 30

/** The default of `heartbeat`. A caller of a hung server waits five seconds at most. */
const heartbeat = { interval: "2 seconds", timeout: "3 seconds" } as const

/** The state of a server whose proxy is not built yet. */
const unknown: Omit<Proxy.State, "label"> = {
  state: "connecting",
  since: 0,
  attempts: 0,
  nextAttempt: undefined,
  failure: undefined,
  info: undefined,
  revision: undefined,
  entries: { tools: 0, resources: 0, resourceTemplates: 0, prompts: 0 },
  connections: 0,
  parkedCalls: 0
}

/** Makes the servers of one gateway. */
export const makeParts = <R>({ build, maxServers, prefix, proxy, scope, services }: Settings<R>) => {
  /** By name, in the order of their places. */
  let parts: ReadonlyArray<Part> = []
  let isRunning = false

  const find = (name: string): Part | undefined => parts.find((part) => part.name === name)

  /** The place after a server, and before the next one. Without a server it is before all others. */
  const placeAfter = (after: string | undefined): number => {
    const index = after === undefined ? -1 : parts.findIndex(({ name }) => name === after)
    const before = parts[index]?.at ?? 0
    const next = parts[index + 1]?.at ?? before + 2 * distance
    return Math.floor((before + next) / 2)
  }

  const open = (name: string, server: Server, at: number): Effect.Effect<void> => {
    const { client, gateway: members = {}, timeout = "30 seconds", transport } = server
    const given = prefix?.(name) ?? members.prefix
    const part: Part = {
      name,
      server,
      prefix: given ?? prefixOf(name, (prefix) => parts.every((part) => part.prefix !== prefix)),
      at,
      required: members.required === true,
      scope: Scope.forkUnsafe(scope, "parallel"),
      states: new Set(),
      processes: new Set(),
      lastStderr: undefined
    }
    parts = [...parts, part].toSorted((one, other) => one.at - other.at)
    const opened = Effect.timeoutOrElse(Clients.make(observed(transport, part), clientOptions(name, client, members)), {
      duration: members.startTimeout as Duration.Input | undefined ?? timeout,
      orElse: () => {
        const message = `${name} did not open within timeout`
        return Effect.fail(new ClientError({ method: "initialize", reason: new Timeout({ message }) }))
      }
    })
    const options = { label: name, ...offered(members), ...connectionsOf(members, opened), ...proxy?.(name) }
    const layer = Layer.provide(
      mounted(part, members, Proxy.layer(opened, options as Proxy.Options<never>)),
      Layer.succeed(ProxyStates, part.states)
    )
    const built = build(at, layer as Layer.Layer<never, never, Catalog.Catalog>).pipe(
      Scope.provide(part.scope),
      Effect.provideContext(services as Context.Context<never>),
      Effect.catchCause((cause) =>
        Cause.hasInterruptsOnly(cause)
          ? Effect.void
          : Effect.andThen(
            Effect.logError(`The server ${quote(name)} cannot be offered`, cause),
            Effect.sync(() => forget(part))
          )
      )
    )
    // While the gateway runs, the definitions of a server follow when it has answered. A reload does not wait for that.
    return isRunning ? Effect.asVoid(Effect.forkIn(built, part.scope, { startImmediately: true })) : built
  }

  const forget = (part: Part): void => {
    parts = parts.filter((other) => other !== part)
  }

  const close = (part: Part): Effect.Effect<void> =>
    Effect.suspend(() => {
      forget(part)
      return Scope.close(part.scope, Exit.void)
    })

  const add = (name: string, server: Server, after: string | undefined): Effect.Effect<void, PoolError> =>
    Effect.suspend(() => {
      if (find(name) !== undefined) {
        const message = `The gateway has a server ${quote(name)} already`
        return Effect.fail(new PoolError({ reason: new DuplicateName({ server: name, message }) }))
      }
      if (parts.length >= maxServers) {
        const message = `The server ${quote(name)} was left out: the gateway has ${maxServers} servers (maxServers)`
        return Effect.fail(new PoolError({ reason: new LimitExceeded({ maxServers, message }) }))
      }
      return open(name, server, placeAfter(after))
    })

  const remove = (name: string): Effect.Effect<void> =>
    Effect.suspend(() => {
      const part = find(name)
      return part === undefined ? Effect.void : close(part)
    })

  /** Closes a server, and opens it again at its place: with another definition, or with the one that it has. */
  const replace = (name: string, server?: Server): Effect.Effect<void, PoolError> =>
    Effect.suspend(() => {
      const part = find(name)
      if (part === undefined) {
        const reason = new ServerNotFound({ server: name, message: `The gateway has no server ${quote(name)}` })
        return Effect.fail(new PoolError({ reason }))
      }
      return Effect.andThen(close(part), Effect.suspend(() => open(name, server ?? part.server, part.at)))
    })

  const states = (): ReadonlyArray<ServerState> =>
    parts.map(({ lastStderr, name, prefix, processes, required, states }) => ({
      ...unknown,
      ...[...states][0]?.(),
      label: name,
      name,
      prefix,
      required,
      processes: Array.from(processes, (one) => ({ pid: one.pid, stderr: one.stderr() })),
      lastStderr
    }))

  /** The servers are added beside the running ones from now on. */
  const start = Effect.sync(() => {
    isRunning = true
  })

  return { add, remove, replace, states, start }
}

/** The servers of one gateway. */
export type Parts = ReturnType<typeof makeParts>

/** The transport of a server, whose processes are known while they run. */
const observed = (transport: Transport, part: Part): Transport => ({
  ...transport,
  connect: Effect.tap(transport.connect, (connection) =>
    isOfProcess(connection)
      ? Effect.acquireRelease(Effect.sync(() => part.processes.add(connection)), () =>
        Effect.sync(() => {
          part.processes.delete(connection)
          part.lastStderr = connection.stderr()
        }))
      : Effect.void)
})

/** The options of the client of a server, which its own options replace. */
const clientOptions = (
  name: string,
  options: Clients.Options | undefined,
  { heartbeat: given, timeout }: Members
): Clients.Options => ({
  label: name,
  ...(timeout === undefined ? undefined : { timeout: timeout as Duration.Input }),
  heartbeat: given === true ? heartbeat : given === false ? undefined : given as Clients.Heartbeat | undefined,
  ...options
})

const offered = ({ prompts = true, resources = true }: Members): Proxy.Options => ({
  prompts,
  resources,
  resourceTemplates: resources
})

const connectionsOf = (
  { connections = "auto", idleTimeout, maxConnections }: Members,
  opened: Proxy.Source<Scope.Scope>
): Proxy.Options<Scope.Scope> => {
  if (connections === "auto" || connections === "shared") return { connections }
  const make = { session: Proxy.perSession, principal: Proxy.perPrincipal, call: Proxy.perCall }[connections]
  return { connections: make(() => opened, { maxConnections, idleTimeout: idleTimeout as Duration.Input | undefined }) }
}

/** The definitions of a server under the names that it has in the gateway. */
const mounted = (
  { prefix }: Part,
  { tools }: Members,
  definitions: Layer.Layer<never, never, Catalog.Catalog>
): Layer.Layer<never, unknown, Catalog.Catalog> => {
  const { change = {}, except, only } = tools ?? {}
  const selection = (names: ReadonlyArray<string> | undefined) => names && { names: names.map(patternOf) }
  const changes = Object.fromEntries(
    Object.entries(change).map(([own, { description, title }]) => [own, { description, title }])
  )
  const changed = tools === undefined
    ? definitions
    : Transform.tools(
      { only: selection(only), except: selection(except), change: changes, missing: "ignore" },
      definitions
    )
  const name = (own: string, kind: "tool" | "prompt"): string => {
    const given = kind === "tool" && Object.hasOwn(change, own) ? change[own]!.name : undefined
    return nameOf(prefix, given ?? own)
  }
  return McpServer.mount({ prefix, name }, changed)
}
