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
import * as Option from "effect/Option"
import * as environment from "./internal/environment.ts"

/** The options that are configured. The other ones are missing, and so have their defaults. */
export type Options = environment.Given

/** Reads one variable. Its value is parsed apart from `Config`, for an error of one line with the name and the value. */
const setting = (option: keyof Options, prefix: string): Config.Config<unknown> =>
  Config.option(Config.String(prefix + environment.variables[option].name)).pipe(
    Config.mapEffect(Option.match({
      onNone: () => Effect.succeed<unknown>(undefined),
      onSome: (value) => {
        const parsed = environment.parse(option, prefix, value)
        return "value" in parsed
          ? Effect.succeed<unknown>(parsed.value)
          : Effect.fail(new Config.ConfigError(new SourceError({ message: parsed.fault })))
      }
    }))
  )

/**
 * Reads the options of a server from variables that begin with `prefix`, `SKEIN_` by default: `SKEIN_PORT`,
 * `SKEIN_ALLOWED_HOSTS` and so on. The guide to HTTP lists all of them. Missing variables are no error. Fails with
 * `ConfigError` for a value that is not valid. `logFormat` and `logLevel` are for `runMain`, and have no effect in
 * `NodeHttp.layer`.
 *
 * @example
 * const options = yield* HttpConfig.config("TEA_SHOP_")
 * const { url } = yield* NodeHttp.serve({ ...options, health: true })
 */
export const config = (prefix: string = environment.defaultPrefix): Config.Config<Options> =>
  Config.map(
    Config.all(Object.fromEntries(environment.names.map((option) => [option, setting(option, prefix)]))),
    (settings) => Object.fromEntries(Object.entries(settings).filter(([, value]) => value !== undefined)) as Options
  )
