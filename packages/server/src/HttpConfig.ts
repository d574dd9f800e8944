/**
 * The options of an HTTP server as a `Config`, for programs that do not use `NodeHttp.runMain`, which reads the same
 * variables from the environment of its process.
 *
 * @example
 * const Listening = Layer.unwrap(Effect.map(HttpConfig.config(), (options) => NodeHttp.layer(options)))
 */
import * as Config from "effect/Config"
import { SourceError } from "effect/ConfigProvider"
import * as Effect from "effect/Effect"
import * as environment from "./internal/base/environment.ts"
import { type Given, variables } from "./internal/http/endpoint/variables.ts"

/** The options that are configured. The other ones are missing, and so have their defaults. */
export type Options = Given

/**
 * Reads the options of a server from variables that begin with `prefix`, `SKEIN_` by default: `SKEIN_PORT`,
 * `SKEIN_ALLOWED_HOSTS` and so on. `PORT` is read if `SKEIN_PORT` is missing. The guide to HTTP lists all of them. A missing variable is not an error. Fails with
 * `ConfigError` for a value that is not valid. `workers`, `logFormat` and `logLevel` are for `runMain`, and have no
 * effect in `NodeHttp.layer`.
 *
 * @example
 * const options = yield* HttpConfig.config("TEA_SHOP_")
 * const { url } = yield* NodeHttp.serve({ ...options, health: true })
 */
export const config = (prefix: string = environment.defaultPrefix): Config.Config<Options> => {
  const names = Object.entries<environment.Variable<unknown>>(variables).flatMap(([option, variable]) =>
    environment.namesOf(option, variable, prefix)
  )
  const texts = Config.all(names.map((name) => Config.withDefault(Config.String(name), "")))
  return Config.mapEffect(texts, (values) => {
    const env = Object.fromEntries(names.map((name, index) => [name, values[index]]))
    // The values are parsed apart from `Config`, for an error of one line with the name and the value.
    const read = environment.readAll<Options>({}, variables, env, prefix)
    return typeof read === "string"
      ? Effect.fail(new Config.ConfigError(new SourceError({ message: read })))
      : Effect.succeed(read)
  })
}
