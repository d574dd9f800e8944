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
import type { CallToolOptions } from "../calls/options.ts"
import { listResult } from "../calls/pages.ts"

/** The members of a client that a toolkit uses. */
export interface ToolClient {
  readonly listTools: () => Effect.Effect<ReadonlyArray<Tool>, ClientError>
  readonly callTool: (
    name: string,
    args?: object,
    options?: CallToolOptions
  ) => Effect.Effect<CallToolResult, ClientError>
}

/** The members of a pool that a toolkit uses. */
export interface ToolPool {
  readonly tools: Effect.Effect<
    ReadonlyArray<{ readonly server: string; readonly result: Result.Result<ReadonlyArray<Tool>, ClientError> }>
  >
  readonly client: (name: string) => Effect.Effect<ToolClient, ClientError | PoolError>
}

/** A single client, several clients by name, or a pool. */
export type ToolSource = ToolClient | ToolPool | Readonly<Record<string, ToolClient>>

/** A server and its tools, or the error of listing them. */
export interface Listed {
  /** The name of the server; `undefined` for a single client. */
  readonly server: string | undefined
  /** The client at the time of a call. */
  readonly client: Effect.Effect<ToolClient, ClientError | PoolError>
  readonly tools: Result.Result<ReadonlyArray<Tool>, ClientError>
}

// A record may have a server with the name of any member, so the type of the member decides: a client is not a
// function.
const isClient = (source: ToolSource): source is ToolClient =>
  "callTool" in source && typeof source.callTool === "function"
const isPool = (source: ToolSource): source is ToolPool => "client" in source && typeof source.client === "function"

const list = (
  server: string | undefined,
  client: ToolClient,
  timeout: Duration.Input
): Effect.Effect<Listed> => {
  const who = server === undefined ? "The server" : `The server ${server}`
  return Effect.map(
    listResult(client.listTools(), timeout, `${who} did not list its tools in time (listTimeout)`),
    (tools) => ({ server, client: Effect.succeed(client), tools })
  )
}

/** Lists the tools of all servers in parallel. A slow server delays the result by the timeout at most. */
export const listAll = (source: ToolSource, timeout: Duration.Input): Effect.Effect<ReadonlyArray<Listed>> => {
  if (isClient(source)) return Effect.map(list(undefined, source, timeout), (listed) => [listed])
  if (isPool(source)) {
    return Effect.map(
      source.tools,
      (all) => all.map(({ result, server }) => ({ server, client: source.client(server), tools: result }))
    )
  }
  return Effect.forEach(Object.entries(source), ([server, client]) => list(server, client, timeout), {
    concurrency: "unbounded"
  })
}
