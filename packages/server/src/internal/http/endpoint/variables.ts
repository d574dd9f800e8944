/**
 * The variables of the environment that set options of a server over HTTP. The name of a variable is that of its option:
 * `SKEIN_MAX_BODY_BYTES` sets `maxBodyBytes`, and `SKEIN_IDLE_TIMEOUT` sets `idleTimeout` of `sessions`.
 */
import type * as Duration from "effect/Duration"
import type { LogLevel } from "effect/LogLevel"
import * as Cors from "../../../Cors.ts"
import * as LegacySse from "../../../LegacySse.ts"
import {
  count,
  duration,
  integer,
  list,
  logVariables,
  nameOf,
  oneOf,
  presence,
  text,
  toggle,
  type Variable
} from "../../base/environment.ts"

/** The options of sessions that the environment may set. They are documented at `Http.SessionOptions`. */
export interface SessionSettings {
  readonly stateless: boolean
  readonly maxSessions: number
  readonly maxSessionsPerPrincipal: number
  readonly maxPendingMessages: number
  readonly idleTimeout: Duration.Duration
  readonly initializeTimeout: Duration.Duration
}

/** The other options that the environment may set. They are documented at `NodeHttp.MainOptions`. */
export interface Settings {
  readonly port: number
  readonly host: string
  readonly path: string
  readonly allowedHosts: ReadonlyArray<string> | "any"
  readonly allowedOrigins: ReadonlyArray<string> | "any"
  readonly cors: Cors.Cors
  readonly trustedProxies: number
  readonly legacySse: LegacySse.LegacySse
  readonly alwaysStream: boolean | "session"
  readonly requireMcpHeaders: boolean
  readonly expiredStreams: "end" | "keep"
  readonly retry: Duration.Duration
  readonly keepAliveInterval: Duration.Duration
  readonly maxBodyBytes: number
  readonly maxConcurrentRequests: number
  readonly maxRetainedBytes: number
  readonly maxStreams: number
  readonly maxUnsentChars: number
  readonly sendTimeout: Duration.Duration
  readonly headersTimeout: Duration.Duration
  readonly requestTimeout: Duration.Duration
  readonly keepAliveTimeout: Duration.Duration
  readonly maxConnections: number
  readonly health: boolean
  readonly drainDelay: Duration.Duration
  readonly shutdownTimeout: Duration.Duration
  readonly logFormat: "pretty" | "json" | "logfmt"
  readonly logLevel: LogLevel
}

/** The settings that are present. */
export type Given = { readonly [K in keyof Settings]?: Settings[K] | undefined } & {
  readonly sessions?: { readonly [K in keyof SessionSettings]?: SessionSettings[K] | undefined } | undefined
}

const ofSession = <A>(variable: Variable<A>): Variable<A> => ({ ...variable, group: "sessions" })

type Variables = {
  readonly [K in keyof (Settings & SessionSettings)]: Variable<(Settings & SessionSettings)[K] | null>
}

// The call is marked as pure in the built package. A bundler keeps a literal with a spread.
const all = (): Variables => ({
  // Heroku, Render, Cloud Run and other platforms choose the port, and pass it in PORT.
  port: { expected: "a port, from 0 to 65535", parse: (value) => integer(value, 65_535), fallback: "PORT" },
  host: text("an address or a name", /^\S+$/),
  path: text("a path that begins with a slash", /^\/[^\s?#]*$/),
  allowedHosts: list("names"),
  allowedOrigins: list("origins such as https://app.example.com"),
  cors: presence(Cors.make()),
  trustedProxies: count,
  stateless: ofSession(toggle),
  maxSessions: ofSession(count),
  maxSessionsPerPrincipal: ofSession(count),
  idleTimeout: ofSession(duration),
  initializeTimeout: ofSession(duration),
  maxPendingMessages: ofSession(count),
  legacySse: presence(LegacySse.make()),
  alwaysStream: {
    expected: "true, false or session",
    parse: (value) => value === "session" ? value : value === "true" ? true : value === "false" ? false : undefined
  },
  requireMcpHeaders: toggle,
  expiredStreams: oneOf(["end", "keep"]),
  retry: duration,
  keepAliveInterval: duration,
  maxBodyBytes: count,
  maxConcurrentRequests: count,
  maxRetainedBytes: count,
  maxStreams: count,
  maxUnsentChars: count,
  sendTimeout: duration,
  headersTimeout: duration,
  requestTimeout: duration,
  keepAliveTimeout: duration,
  maxConnections: count,
  health: toggle,
  drainDelay: duration,
  shutdownTimeout: duration,
  ...logVariables
})

/** The variables, by their options. */
export const variables: Variables = all()

/** The options and their variables, as the guide to HTTP lists them. */
export const rows = (): ReadonlyArray<{ readonly name: string; readonly option: string }> =>
  Object.entries<Variable<unknown>>(variables).map(([option, { group }]) => ({
    name: nameOf(option),
    option: group === undefined ? option : `${group}.${option}`
  }))
