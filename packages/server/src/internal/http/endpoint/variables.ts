/**
 * The variables of the environment that set options of a server over HTTP. The name of a variable is that of its option:
 * `SKEIN_KEEP_ALIVE_INTERVAL` sets `keepAliveInterval`, `SKEIN_IDLE_TIMEOUT` sets `idleTimeout` of `limits`, and
 * `SKEIN_NODE_REQUESTS_KEYS` sets `keys` of `nodeRequests`.
 */
import type * as Duration from "effect/Duration"
import * as Cors from "../../../Cors.ts"
import * as LegacySse from "../../../LegacySse.ts"
import { minKeyBytes } from "../../../RequestState.ts"
import {
  count,
  duration,
  integer,
  list,
  logVariables,
  nameOf,
  oneOf,
  port,
  presence,
  secrets,
  text,
  toggle,
  type Variable
} from "../../base/environment.ts"

const limits = () => {
  const number: Variable<number> = { ...count, group: "limits" }
  const time: Variable<Duration.Duration> = { ...duration, group: "limits" }
  return {
    maxMessageBytes: number,
    maxRetainedBytes: number,
    maxInFlightRequests: number,
    maxStreams: number,
    maxSessions: number,
    maxSessionsPerPrincipal: number,
    idleTimeout: time,
    requestTimeout: time,
    keepAliveTimeout: time,
    maxConnections: number
  }
}

const address = text("an address or a name", /^\S+$/)

const member = <A, const M extends string>(member: M, variable: Variable<A>) => ({
  ...variable,
  group: "nodeRequests" as const,
  member
})

const nodeRequests = () => ({
  nodeRequestsKeys: member("keys", secrets(minKeyBytes)),
  nodeRequestsTlsFolder: member("tlsFolder", text("a folder", /./)),
  nodeRequestsTlsName: member("tlsName", text("a DNS name", /^[\w.*-]+$/)),
  nodeRequestsHost: member("host", address),
  nodeRequestsPort: member("port", port),
  nodeRequestsAdvertisedHost: member("advertisedHost", address)
})

const settings = () => ({
  // Heroku, Render, Cloud Run and other platforms choose the port, and pass it in PORT.
  port: { ...port, fallback: "PORT" },
  host: address,
  path: text("a path that begins with a slash", /^\/[^\s?#]*$/),
  allowedHosts: list("names"),
  allowedOrigins: list("origins such as https://app.example.com"),
  cors: presence(Cors.make()),
  trustedProxies: count,
  stateless: toggle,
  sessions: oneOf(["anywhere", "home"]),
  stateKeys: secrets(minKeyBytes),
  legacySse: presence(LegacySse.make()),
  alwaysStream: {
    expected: "true, false or session",
    parse: (value: string) => value === "session" ? value : toggle.parse(value)
  },
  streamAfter: duration,
  requireMcpHeaders: toggle,
  expiredStreams: oneOf(["end", "keep"]),
  keepAliveInterval: duration,
  health: toggle,
  drainDelay: duration,
  shutdownTimeout: duration,
  workers: {
    expected: "auto or a number from 1",
    parse: (value: string) => value === "auto" ? value : integer(value, Number.MAX_SAFE_INTEGER) || undefined
  },
  ...logVariables
})

/** The values of variables, where they are present. */
type Values<Variables> = {
  readonly [K in keyof Variables]?: Variables[K] extends Variable<infer A> ? Exclude<A, null> | undefined : never
}

/** The values of the variables of `nodeRequests`, by the names of its members. */
type Members<Variables extends { readonly [option: string]: { readonly member: string } }> = {
  readonly [V in Variables[keyof Variables] as V["member"]]?: V extends Variable<infer A> ? A | undefined : never
}

/** The options that the environment may set. Each is documented where it is declared, and in the HTTP guide. */
export interface Given extends Values<ReturnType<typeof settings>> {
  readonly limits?: Values<ReturnType<typeof limits>> | undefined
  readonly nodeRequests?: Members<ReturnType<typeof nodeRequests>> | undefined
}

// The call is marked as pure in the built package. A bundler keeps a literal with a spread.
const all = () => ({ ...settings(), ...nodeRequests(), ...limits() })

/** The variables, by their options. */
export const variables = all()

/** The options and their variables, as the guide to HTTP lists them. */
export const rows = (): ReadonlyArray<{ readonly name: string; readonly option: string }> =>
  Object.entries<Variable<unknown>>(variables).map(([option, { group, member = option }]) => ({
    name: nameOf(option),
    option: group === undefined ? option : `${group}.${member}`
  }))
