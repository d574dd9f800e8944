/** Checks the options of a proxy, and fills in their defaults. */
import * as PrintableError from "@skein/protocol/PrintableError"
import * as Settings from "@skein/runtime/Options"
import * as Redacted from "effect/Redacted"
import { randomBytes } from "node:crypto"
import { keyProblem } from "../shared/cipher.ts"
import { isLoopback } from "../shared/web.ts"
import type { Options } from "./proxyOptions.ts"
import { requestTimeoutOf } from "./upstream.ts"

/** Why a proxy does not start. `Proxy` makes its public error of it. */
export class StartError extends PrintableError.tagged("StartError")<{
  readonly message: string
  readonly cause?: unknown
}> {}

const seconds = (name: string, millis: number): number => {
  const value = Math.floor(millis / 1_000)
  if (!(value >= 1)) throw new StartError({ message: `${name} must be at least one second` })
  return Math.min(value, 10 * 365 * 86_400)
}

/** A renewal can be three requests, and must end before its lock does. In milliseconds. */
const maxTimeoutMillis = 15_000

const resolveBounds = (options: Options) =>
  Settings.resolve(
    {
      accessTokenLifetime: options.accessTokenLifetime,
      refreshTokenLifetime: options.refreshTokenLifetime,
      registrationLifetime: options.registrationLifetime,
      signInTimeout: options.signInTimeout,
      refreshTokenReuseInterval: options.refreshTokenReuseInterval,
      minTokenLifetime: options.minTokenLifetime,
      maxRegistrationsPerMinute: options.maxRegistrationsPerMinute,
      maxSignInsPerMinute: options.maxSignInsPerMinute
    },
    { maxRegistrationsPerMinute: 20, maxSignInsPerMinute: 60 },
    {
      accessTokenLifetime: "10 minutes",
      refreshTokenLifetime: "720 hours",
      registrationLifetime: "8760 hours",
      signInTimeout: "10 minutes",
      refreshTokenReuseInterval: "30 seconds",
      minTokenLifetime: "30 seconds"
    }
  )

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
  const upstreamUrl = URL.parse(options.upstream.issuer)
  if (upstreamUrl === null || (upstreamUrl.protocol !== "https:" && !isLoopback(upstreamUrl.hostname))) {
    throw new StartError({ message: `the issuer of the upstream must be an https address: ${options.upstream.issuer}` })
  }
  const timeout = requestTimeoutOf(options.upstream)
  if (!(timeout >= 1 && timeout <= maxTimeoutMillis)) {
    throw new StartError({
      message: `requestTimeout of the upstream must be from 1 to ${maxTimeoutMillis} milliseconds: ${timeout}`
    })
  }
  const settings = resolveBounds(options)
  return {
    origin,
    originUrl: new URL(origin),
    keys,
    serverName: options.serverName ?? url.host,
    defaultScopes: options.defaultScopes ?? options.scopes,
    accessTokenSeconds: seconds("accessTokenLifetime", settings.accessTokenLifetime),
    refreshTokenSeconds: seconds("refreshTokenLifetime", settings.refreshTokenLifetime),
    registrationSeconds: seconds("registrationLifetime", settings.registrationLifetime),
    signInSeconds: seconds("signInTimeout", settings.signInTimeout),
    rotationGraceMillis: settings.refreshTokenReuseInterval,
    renewBeforeMillis: settings.minTokenLifetime,
    maxRegistrationsPerMinute: settings.maxRegistrationsPerMinute,
    maxSignInsPerMinute: settings.maxSignInsPerMinute
  }
}
/** The options with their defaults. */
export type Resolved = ReturnType<typeof resolve>
