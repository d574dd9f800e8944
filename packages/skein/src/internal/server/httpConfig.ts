/**
 * The options of HTTP from the environment of the process, for programs that do not use `runHttp`.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import type { HttpMainOptions } from "./httpOptions.ts"

/** The options of HTTP that the environment sets. The other ones are missing. */
export type HttpConfig = Omit<HttpMainOptions, "onListening" | "environment">

/**
 * Reads the options of a server from the variables that `runHttp` reads: `SKEIN_PORT`, `SKEIN_ALLOWED_HOSTS` and so on, or
 * those that begin with another `prefix`. `PORT` is read if `SKEIN_PORT` is missing. Rejects with a `TypeError` for a value
 * that is not valid. `workers`, `logFormat` and `logLevel` are for `runHttp`, and have no effect in `listen`.
 *
 * @example
 * const { url } = await server.listen({ health: true, ...await httpConfig("TEA_SHOP_") })
 */
export const httpConfig = async (prefix = "SKEIN_"): Promise<HttpConfig> => {
  const { config } = await import("@skein/server/HttpConfig")
  const { fromEnv } = await import("effect/ConfigProvider")
  // The provider that Effect has by default reads the environment once.
  const read = Effect.runSync(
    Effect.result(config(prefix).parse(fromEnv({ env: process.env as Record<string, string> })))
  )
  if (read._tag === "Failure") throw new TypeError(read.failure.cause.message)
  const { cors, legacySse, limits, stateKeys, ...options } = read.success
  return {
    ...inMilliseconds(options),
    ...(cors === undefined ? undefined : { cors: true }),
    ...(legacySse === undefined ? undefined : { legacySse: true }),
    ...(limits === undefined ? undefined : { limits: inMilliseconds(limits) }),
    ...(stateKeys === undefined ? undefined : { stateKeys: stateKeys.map(Redacted.value) })
  }
}

/** An option without the durations of Effect. */
type InMilliseconds<O> = { [K in keyof O]: O[K] extends Duration.Duration | undefined ? number : O[K] }

const inMilliseconds = <O extends object>(options: O): InMilliseconds<O> => {
  const entries = Object.entries(options).map(([name, value]: [string, unknown]) => [
    name,
    Duration.isDuration(value) ? Duration.toMillis(value) : value
  ])
  return Object.fromEntries(entries) as InMilliseconds<O>
}
