/**
 * The form in which the tests use each published client library. A library that cannot do something leaves the member
 * out.
 */

/** How a library reaches a server. */
export type Server =
  | { readonly transport: "stdio"; readonly command: string; readonly args: ReadonlyArray<string> }
  | { readonly transport: "http" | "sse"; readonly url: string }

export type Arguments = Readonly<Record<string, unknown>>

/** An open connection of a library, with the results in the form of the library. */
export interface Connection {
  /** The server's name and version, its instructions, or whatever the library exposes of the handshake. */
  readonly handshake?: () => unknown
  readonly tools: () => Promise<unknown>
  readonly call: (name: string, args: Arguments, onProgress?: (note: unknown) => void) => Promise<unknown>
  /** Whether `call` reports progress. */
  readonly hasProgress?: boolean
  readonly resources?: () => Promise<unknown>
  readonly templates?: () => Promise<unknown>
  readonly read?: (uri: string) => Promise<unknown>
  readonly prompts?: () => Promise<unknown>
  readonly prompt?: (name: string, args: Readonly<Record<string, string>>) => Promise<unknown>
  readonly close: () => Promise<unknown>
}

export type Connect = (server: Server) => Promise<Connection>

// The libraries are not installed with the repository, so their types are unknown to the type check.
export type Any = any

/** Imports a module of `interop/published/node_modules`. */
export const load = (name: string): Promise<Any> => import(name)

export const clientInfo = { name: "published", version: "1.0.0" }
