/**
 * The sources of the tools of a toolkit: clients and pools, reduced to the members that a toolkit uses.
 */
import type { CallToolResult } from "@skein/protocol/CallTool"
import type { Tool } from "@skein/protocol/Tool"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Result from "effect/Result"
import type { ClientError } from "../../ClientError.ts"
import type { PoolError } from "../../PoolError.ts"
import type { CallToolOptions } from "../base/callOptions.ts"
import { listResult } from "../calls/pages.ts"

/** The members of a client that a toolkit uses. */
export interface ToolClient {
  readonly instructions?: string | undefined
  readonly listTools: () => Effect.Effect<ReadonlyArray<Tool>, ClientError>
  readonly callTool: (
    name: string,
    args?: object,
    options?: CallToolOptions
  ) => Effect.Effect<CallToolResult, ClientError>
}

/** The tools of a server, as far as they are known now. */
export interface Ready {
  readonly server: string
  /** The tools, or the error of a broken server. `undefined` if the server is not ready yet. */
  readonly tools: Result.Result<ReadonlyArray<Tool>, ClientError> | undefined
  /** The instructions of the server for a model. */
  readonly instructions: string | undefined
}

/** The options of `ready` of a pool. */
export interface ReadyOptions {
  /** Selects servers by name: all by default. */
  readonly servers?: ((server: string) => boolean) | undefined
  /** How long to wait for a server that is opened for the first time, and then for its list. Default: not at all. */
  readonly readyTimeout?: Duration.Input | undefined
}

/** The members of a pool that a toolkit uses. */
export interface ToolPool {
  readonly ready: (options: ReadyOptions) => Effect.Effect<ReadonlyArray<Ready>>
  readonly client: (name: string) => Effect.Effect<ToolClient, ClientError | PoolError>
}

/** A single client, several clients by name, or a pool. */
export type ToolSource = ToolClient | ToolPool | Readonly<Record<string, ToolClient>>

/** A server and its tools, or the error of listing them. */
export interface Listed extends Omit<Ready, "server"> {
  /** The name of the server; `undefined` for a single client. */
  readonly server: string | undefined
  /** The client at the time of a call. */
  readonly client: Effect.Effect<ToolClient, ClientError | PoolError>
}

// A record may have a server with the name of any member, so the type of the member decides: a client is not a
// function.
const isClient = (source: ToolSource): source is ToolClient =>
  "callTool" in source && typeof source.callTool === "function"
const isPool = (source: ToolSource): source is ToolPool => "client" in source && typeof source.client === "function"

const list = (server: string | undefined, client: ToolClient): Effect.Effect<Listed> => {
  const who = server === undefined ? "The server" : `The server ${server}`
  return Effect.map(
    listResult(client.listTools(), `${who} did not list its tools`),
    (tools) => ({ server, client: Effect.succeed(client), tools, instructions: client.instructions })
  )
}

/**
 * Lists the tools of all servers in parallel. `readyTimeout` is for the servers of a pool. A slow server delays the result
 * by that time, or by `listTimeout`.
 */
export const listAll = (
  source: ToolSource,
  servers: ((server: string) => boolean) | undefined,
  readyTimeout: Duration.Input
): Effect.Effect<ReadonlyArray<Listed>> => {
  if (isClient(source)) return Effect.map(list(undefined, source), (listed) => [listed])
  if (isPool(source)) {
    return Effect.map(
      source.ready({ servers, readyTimeout }),
      (all) => all.map((ready) => ({ ...ready, client: source.client(ready.server) }))
    )
  }
  const chosen = Object.entries(source).filter(([server]) => servers?.(server) ?? true)
  return Effect.forEach(chosen, ([server, client]) => list(server, client), { concurrency: "unbounded" })
}
