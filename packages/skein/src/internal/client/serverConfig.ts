/**
 * The reading of configurations without opening their servers.
 */
import * as CoreServerConfig from "@skein/client/ServerConfig"
import * as Effect from "effect/Effect"
import type { Awaitable } from "../base/types.ts"
import type { PoolError } from "./errors.ts"
import type { ConfigEntry, ConfigInput } from "./nodeConfig.ts"

/** The values of variables in a configuration, and its name. */
export interface ReadConfigOptions {
  /** The name of the configuration in messages: the path of its file, for example. */
  readonly source?: string | undefined
  /** The environment for `${VAR}` and `${env:VAR}`: empty by default. */
  readonly env?: { readonly [name: string]: string | undefined } | undefined
  /** The value of `${workspaceFolder}`: none by default. */
  readonly workspaceFolder?: string | undefined
  /** The value of `${userHome}`: none by default. */
  readonly userHome?: string | undefined
  /** The value of `${pathSeparator}` and `${/}`: `/` by default. */
  readonly pathSeparator?: string | undefined
  /** Selects entries by name: all by default. The others are not read. */
  readonly servers?: ((server: string) => boolean) | undefined
  /** Asks for the value of an input of VS Code. Without it, or for `undefined`, its `default` is used. */
  readonly input?: ((input: ConfigInput) => Awaitable<string | undefined>) | undefined
}

/** The entries of a configuration. */
export interface ReadConfig {
  readonly entries: ReadonlyArray<ConfigEntry>
  /** The names of disabled entries. */
  readonly disabled: ReadonlyArray<string>
  /** One error for each entry that is invalid: `InvalidEntry` or `MissingVariable`. */
  readonly problems: ReadonlyArray<PoolError>
}

/** Reads configurations without opening their servers: to show them, or to edit them. */
export const ServerConfig: {
  /**
   * Parses JSON with comments and trailing commas. Throws a `PoolError` with the reason `InvalidConfig`, which has the position
   * and no part of the text.
   *
   * @example
   * const config = ServerConfig.parse(await readFile("mcp.json", "utf8"), "mcp.json")
   */
  readonly parse: (text: string, source?: string) => unknown
  /**
   * Reads the entries of a configuration. Rejects with `InvalidConfig` if it lists no servers.
   *
   * @example
   * const { entries, problems } = await ServerConfig.read(config, { env: { TOKEN: "secret" } })
   */
  readonly read: (config: unknown, options?: ReadConfigOptions) => Promise<ReadConfig>
} = {
  parse: (text, source) => Effect.runSync(CoreServerConfig.parse(text, source)),
  read: (config, { input, ...options } = {}) =>
    Effect.runPromise(CoreServerConfig.read(config, {
      ...options,
      input: input && ((asked) => Effect.promise(async () => input(asked)))
    })) as Promise<ReadConfig>
}
