/**
 * Configurations of servers for pools: the files of Claude Desktop, Cursor, VS Code and others. Files need Node.
 */
import * as Core from "@skein/client/NodeConfig"
import type { Opaque } from "../base/definition.ts"
import type { JsonObject } from "../base/messages.ts"
import type { Duration } from "../base/types.ts"
import type { ClientOptions } from "./options.ts"
import type { StdioOptions } from "./stdio.ts"
import type { NodeHttpOptions } from "./transports.ts"

/** A server that is a process. */
export interface StdioEntry {
  readonly type: "stdio"
  readonly name: string
  readonly command: string
  readonly args: ReadonlyArray<string>
  /** Variables for the process. `null` in a configuration removes a variable: it is `undefined` here. */
  readonly env: { readonly [name: string]: string | undefined }
  readonly cwd: string | undefined
  /** The path of a file with further variables. `env` has precedence. */
  readonly envFile: string | undefined
  /** The entry as it is written, without expanded variables. */
  readonly raw: JsonObject
}

/** A server over HTTP. `sse` is the HTTP+SSE transport of 2024-11-05. */
export interface HttpEntry {
  readonly type: "http" | "sse"
  readonly name: string
  readonly url: string
  readonly headers: { readonly [name: string]: string }
  /** The entry as it is written, without expanded variables. */
  readonly raw: JsonObject
}

/** The entry of a server in a configuration, with expanded variables. */
export type ConfigEntry = StdioEntry | HttpEntry

/** An item of `inputs` in a configuration of VS Code. */
export interface ConfigInput {
  readonly id: string
  /** `promptString` or `pickString`, as it is written. */
  readonly type: string | undefined
  readonly description: string | undefined
  readonly default: string | undefined
  /** Whether the value is a secret. */
  readonly password: boolean
  /** The values to choose from. */
  readonly options: ReadonlyArray<string>
}

/** A configuration that a pool reads. */
export interface ConfigSource extends Opaque<"configuration"> {}

/** The values of variables in a configuration, and the options of its transports and clients. */
export interface ConfigOptions {
  /**
   * The environment for variables: `process.env` by default. An entry can send each of them to its server: for a file that the
   * user did not write, pass only those that it may use.
   */
  readonly env?: { readonly [name: string]: string | undefined } | undefined
  /** The value of `${workspaceFolder}`, and the folder of relative paths: the working directory by default. */
  readonly workspaceFolder?: string | undefined
  /** Selects entries by name: all by default. The others are not read. */
  readonly servers?: ((server: string) => boolean) | undefined
  /** Asks for the value of an input of VS Code, once. Without it, or for `undefined`, its `default` is used. */
  readonly input?: ((input: ConfigInput) => PromiseLike<string | undefined>) | undefined
  /** Further options of the process of an entry: `shutdownTimeout`, for example. */
  readonly stdio?: ((entry: StdioEntry) => Partial<StdioOptions>) | undefined
  /** Further options of the HTTP transport of an entry: `credentials`, for example. */
  readonly http?: ((entry: HttpEntry) => Partial<NodeHttpOptions>) | undefined
  /** The options of the client of an entry. */
  readonly client?: ((entry: ConfigEntry) => ClientOptions) | undefined
  /**
   * How long one attempt to open the server of an entry may take: the `timeout` of the pool by default.
   *
   * @example
   * timeout: (entry) => entry.type === "stdio" && entry.command === "npx" ? "5 minutes" : undefined
   */
  readonly timeout?: ((entry: ConfigEntry) => Duration | undefined) | undefined
}

/** The options of a file. */
export interface ConfigFileOptions extends ConfigOptions {
  /** Whether a missing file counts as an empty configuration: false by default. */
  readonly optional?: boolean | undefined
}

/**
 * Configurations of servers. Processes are started with `stderr: "capture"`. Each entry may start any program: read only files
 * that the user has written. A configuration of more than 16 MiB is refused.
 */
export const NodeConfig: {
  /**
   * A configuration in a file of JSON with comments.
   *
   * @example
   * NodeConfig.file("~/.cursor/mcp.json", { optional: true })
   */
  readonly file: (path: string | URL, options?: ConfigFileOptions) => ConfigSource
  /**
   * A configuration as an object: parsed from TOML or YAML, for example, or stored in a database.
   *
   * @example
   * NodeConfig.object({ mcpServers: { time: { command: "uvx", args: ["mcp-server-time"] } } })
   */
  readonly object: (config: unknown, options?: ConfigOptions) => ConfigSource
} = { file: Core.file as never, object: Core.object as never }
