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
import * as environment from "./internal/base/environment.ts"
import { type Given, variables } from "./internal/http/endpoint/variables.ts"

/** The options that are configured. The other ones are missing, and so have their defaults. */
export type Options = Given

const options = Object.entries(variables as environment.Variables)

/**
 * Reads the variable of one option. Its value is parsed apart from `Config`, for an error of one line with the name and
 * the value.
 */
const setting = (option: string, variable: environment.Variable<unknown>, prefix: string): Config.Config<unknown> =>
  Config.all(
    environment.namesOf(option, variable, prefix).map((name) =>
      Config.map(Config.option(Config.String(name)), Option.map((value) => ({ name, value })))
    )
  ).pipe(
    Config.mapEffect((found) => {
      const first = Option.getOrUndefined(Option.firstSomeOf(found))
      if (first === undefined) return Effect.succeed<unknown>(null)
      const parsed = environment.parse(variable, first.name, first.value)
      return "value" in parsed
        ? Effect.succeed(parsed.value)
        : Effect.fail(new Config.ConfigError(new SourceError({ message: parsed.fault })))
    })
  )

/**
 * Reads the options of a server from variables that begin with `prefix`, `SKEIN_` by default: `SKEIN_PORT`,
 * `SKEIN_ALLOWED_HOSTS` and so on. `PORT` is read if `SKEIN_PORT` is missing. The guide to HTTP lists all of them. A missing variable is not an error. Fails with
 * `ConfigError` for a value that is not valid. `logFormat` and `logLevel` are for `runMain`, and have no effect in
 * `NodeHttp.layer`.
 *
 * @example
 * const options = yield* HttpConfig.config("TEA_SHOP_")
 * const { url } = yield* NodeHttp.serve({ ...options, health: true })
 */
export const config = (prefix: string = environment.defaultPrefix): Config.Config<Options> =>
  Config.map(
    Config.all(options.map(([option, variable]) => setting(option, variable, prefix))),
    (values) => {
      const read: Record<string, unknown> = {}
      for (const [at, [option, variable]] of options.entries()) environment.set(read, option, variable, values[at])
      return read as Options
    }
  )
