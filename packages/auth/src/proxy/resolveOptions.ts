/** Checks the options of a proxy, and fills in their defaults. */
import { isLoopback } from "@skein/protocol/Hostname"
import * as PrintableError from "@skein/protocol/PrintableError"
import * as Settings from "@skein/runtime/Options"
import * as Redacted from "effect/Redacted"
import { randomBytes } from "node:crypto"
import { keyProblem } from "../shared/cipher.ts"
import { isSafe } from "../shared/web.ts"
import type { Options } from "./proxyOptions.ts"
import { requestTimeoutOf } from "./upstream.ts"

/** Why a proxy does not start. `Proxy` makes its public error of it. */
export class StartError extends PrintableError.tagged("StartError")<{
  readonly cause?: unknown
}> {}

/** A duration of an option in seconds. Fails if it is shorter than one. */
export const seconds = (name: string, millis: number): number => {
  const value = Math.floor(millis / 1_000)
  if (!(value >= 1)) throw new StartError({ message: `${name} must be at least one second` })
  return Math.min(value, 10 * 365 * 86_400)
}

/** The error of a start that failed for any other reason. */
export const startFailed = (cause: unknown): StartError =>
  cause instanceof StartError
    ? cause
    : new StartError({ message: cause instanceof Error ? cause.message : String(cause), cause })

/** A renewal can be three requests, and must end before its lock does. In milliseconds. */
const maxTimeoutMillis = 15_000

/** How long a registration is stored, in milliseconds: a year. Then the client is unknown, and registers again. */
const registrationLifetime = 31_536_000_000

/**
 * How long a rotated refresh token works again, in milliseconds: two processes may refresh at once, or an answer may be
 * lost. A later use ends the grant.
 */
const refreshTokenReuseInterval = 30_000

type Bounds = Pick<
  Options,
  "accessTokenLifetime" | "maxSignInsPerMinute" | "minTokenLifetime" | "refreshTokenLifetime" | "signInTimeout"
>

/** Checks the options. A public host needs https, and keys that survive a restart. */
export const resolve = (options: Options) => {
  const { resource } = options
  const [, origin] = /^(https?:\/\/[^/?#]+)/i.exec(resource) ?? []
  const url = URL.parse(resource)
  if (origin === undefined || url === null) {
    throw new StartError({ message: `resource must be the http or https address of the endpoint: ${resource}` })
  }
  const local = isLoopback(url.hostname)
  if (url.protocol !== "https:" && !local) {
    throw new StartError({ message: `a proxy on a public host needs https: ${origin}` })
  }
  if (options.keys === undefined && !local) {
    throw new StartError({
      message: `a proxy on a public host needs keys: the tokens of ${origin} are encrypted with them`
    })
  }
  const keys = options.keys?.map(Redacted.value) ?? [randomBytes(32).toString("base64url")]
  const problem = keyProblem(keys)
  if (problem !== undefined) throw new StartError({ message: problem })
  if (options.scopes.length === 0) throw new StartError({ message: "scopes is empty" })
  if (!isSafe(URL.parse(options.upstream.issuer))) {
    throw new StartError({ message: `the issuer of the upstream must be an https address: ${options.upstream.issuer}` })
  }
  const timeout = requestTimeoutOf(options.upstream)
  if (!(timeout >= 1 && timeout <= maxTimeoutMillis)) {
    throw new StartError({
      message: `requestTimeout of the upstream must be from 1 to ${maxTimeoutMillis} milliseconds: ${timeout}`
    })
  }
  const { accessTokenLifetime, maxSignInsPerMinute, minTokenLifetime, refreshTokenLifetime, signInTimeout } = Settings
    .resolve<Bounds>(
      options,
      { maxSignInsPerMinute: 60 },
      {
        accessTokenLifetime: "10 minutes",
        refreshTokenLifetime: "720 hours",
        minTokenLifetime: "30 seconds",
        signInTimeout: "10 minutes"
      }
    )
  return {
    origin,
    originUrl: new URL(origin),
    keys,
    serverName: options.serverName ?? url.host,
    defaultScopes: options.defaultScopes ?? options.scopes,
    accessTokenSeconds: seconds("accessTokenLifetime", accessTokenLifetime),
    refreshTokenSeconds: seconds("refreshTokenLifetime", refreshTokenLifetime),
    signInSeconds: seconds("signInTimeout", signInTimeout),
    registrationMillis: registrationLifetime,
    rotationGraceMillis: refreshTokenReuseInterval,
    renewBeforeMillis: minTokenLifetime,
    maxSignInsPerMinute
  }
}
/** The options with their defaults. */
export type Resolved = ReturnType<typeof resolve>
