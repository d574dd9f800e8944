/**
 * The class `AsyncClient`.
 */
import * as Core from "@skein/client/AsyncClient"
import type { Transport } from "../base/definition.ts"
import type { ClientMethods } from "./clientMethods.ts"
import { type ConnectOptions, toCore } from "./options.ts"
import type { StdioOptions } from "./stdio.ts"
import type { HttpOptions } from "./transports.ts"

/**
 * The server of a client: a URL (`http:`, `https:`), a command with its arguments such as `node server.js`, the options of
 * `Http.transport` or `Stdio.transport`, or a transport, such as `server.transport()` of an `AsyncServer`. No shell interprets
 * a command: spaces separate its arguments, unless quotes are around them. On Node, a URL without a `fetch` is reached by
 * `NodeHttp.transport`.
 */
export type Server = string | URL | HttpOptions | StdioOptions | Transport

/**
 * A client of one server. `AsyncClient.connect` makes it; `close` ends it.
 *
 * @example
 * const client = await AsyncClient.connect({ command: "node", args: ["server.js"] }, {
 *   elicit: async ({ message, requestedSchema }, { signal }) => {
 *     const values = await showForm(message, requestedSchema, signal)
 *     return values === undefined ? { action: "decline" } : { action: "accept", content: values }
 *   }
 * })
 * try {
 *   const { sum } = await client.callTool("add", { a: 1, b: 2 }, { output: z.object({ sum: z.number() }) })
 * } finally {
 *   await client.close()
 * }
 */
export interface AsyncClient extends ClientMethods {
  /**
   * Closes the client, and ends its server if the transport has started it. Pending calls reject with `Closed`, loops end, and
   * the signals of handlers abort. Resolves when nothing runs any more.
   */
  close(): Promise<void>
  /** Closes the client at the end of a block: `await using client = await AsyncClient.connect(url)`. */
  [Symbol.asyncDispose](): Promise<void>
}

/** The class of `AsyncClient`. */
export interface AsyncClientClass {
  /**
   * Connects to a server, and negotiates the revision. Rejects with a `ClientError` if that fails, with `InvalidRoot` for an
   * invalid root, and with a `TypeError` for a value that names no server. Nothing is left open then.
   *
   * @example
   * const remote = await AsyncClient.connect("https://mcp.example.com/mcp")
   * const local = await AsyncClient.connect("node server.js", { onLog: ({ data }) => console.error(data) })
   */
  connect(server: Server, options?: ConnectOptions): Promise<AsyncClient>
  /** Tells whether a value is a client: `value instanceof AsyncClient`. */
  [Symbol.hasInstance](value: unknown): value is AsyncClient
}

export const AsyncClient: AsyncClientClass = {
  connect: async (server, options = {}) => {
    // The class refuses the arguments of a command.
    const core = Array.isArray(options) ? options as never : await toCore(options)
    return (await Core.AsyncClient.connect(server as never, core)) as unknown as AsyncClient
  },
  [Symbol.hasInstance]: (value): value is AsyncClient => value instanceof Core.AsyncClient
}
