/**
 * The transport of clients to processes. It needs Node: no module that browsers load imports it.
 */
import * as CoreStdio from "@skein/client/Stdio"
import type { Transport } from "../base/definition.ts"
import type { Duration } from "../base/types.ts"

/** The command that starts a server, and the bounds of the connection to it. */
export interface StdioOptions {
  /** The program: a path, or a name that is looked up in `PATH`. No shell interprets it. */
  readonly command: string
  /** The arguments: none by default. */
  readonly args?: ReadonlyArray<string> | undefined
  /** Environment variables in addition to those of `Stdio.defaultEnv`. A variable that is `undefined` is removed. */
  readonly env?: { readonly [name: string]: string | undefined } | undefined
  /** Whether the server inherits the whole environment of this process instead of `Stdio.defaultEnv`: false by default. */
  readonly inheritEnv?: boolean | undefined
  /** The working directory: that of this process by default. */
  readonly cwd?: string | URL | undefined
  /**
   * Where the server's stderr goes: to that of this process (`inherit`, the default), nowhere, into memory (`capture`: the last
   * 8 Ki characters are part of the error with which a failed server ends), to both (`forward`, the default of
   * `AsyncClient.connect` for a command), or to a function, which receives the text as it arrives.
   */
  readonly stderr?: "inherit" | "ignore" | "capture" | "forward" | ((text: string) => void) | undefined
  /** How long the server may take to exit, before SIGTERM and again before SIGKILL: 2 seconds by default. */
  readonly shutdownTimeout?: Duration | undefined
  /** The longest line that is read, in bytes: 4 MiB by default. A longer line is skipped. */
  readonly maxLineBytes?: number | undefined
}

/** The transport to a child process, which ends with the connection. */
export const Stdio: {
  /**
   * Makes a transport that starts a server for each connection. The server leads a process group of its own. When the client
   * closes, its stdin is closed; the whole group gets SIGTERM and then SIGKILL if it does not exit.
   *
   * @example
   * Stdio.transport({ command: "uvx", args: ["mcp-server-time"], env: { TZ: "Europe/Berlin" } })
   */
  readonly transport: (options: StdioOptions) => Transport
  /** The names of the environment variables that a server inherits by default: paths, the user, the language. */
  readonly defaultEnv: ReadonlyArray<string>
} = { transport: CoreStdio.transport as never, defaultEnv: CoreStdio.defaultEnv }

/** The members of a `ServerExited`. */
export interface ServerExitedFields {
  readonly pid: number
  readonly code: number | undefined
  readonly signal: string | undefined
  /** The captured end of its stderr. */
  readonly stderr: string
}

/** A server process exited with a code other than 0, or was killed. It is the `cause` of a `TransportError`. */
export interface ServerExited extends Error, ServerExitedFields {
  readonly _tag: "ServerExited"
}

/** The class of `ServerExited`. */
export interface ServerExitedClass {
  new(fields: ServerExitedFields): ServerExited
  readonly prototype: ServerExited
}

export const ServerExited: ServerExitedClass = CoreStdio.ServerExited as never
