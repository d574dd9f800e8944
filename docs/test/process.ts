/** Runs programs as processes, each on a free port. */
import type * as JsonRpc from "@skein/protocol/JsonRpc"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { type Place, type Running, start } from "./runtime.ts"

/** Starts a program, and kills it with the scope. */
export const started = (name: string, place?: Place): Effect.Effect<Running, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.promise(() => start(name, place)),
    ({ child }) => Effect.sync(() => void child.kill("SIGKILL"))
  )

// ---- a minimal client

export type Headers = Readonly<Record<string, string>>

export const posting = { "content-type": "application/json", accept: "application/json, text/event-stream" } as const

/** A request of the stateless revision, with its metadata. */
export const modern = (
  method: string,
  params: JsonRpc.JsonObject = {},
  headers: Headers = {},
  meta: JsonRpc.JsonObject = {}
) => {
  const name = params["name"] ?? params["uri"]
  return {
    method: "POST",
    headers: {
      ...posting,
      "mcp-protocol-version": "2026-07-28",
      "mcp-method": method,
      ...(typeof name === "string" ? { "mcp-name": name } : {}),
      ...headers
    } as Headers,
    body: JSON.stringify({
      jsonrpc: "2.0",
      id: 1,
      method,
      params: {
        ...params,
        _meta: {
          ...meta,
          "io.modelcontextprotocol/protocolVersion": "2026-07-28",
          "io.modelcontextprotocol/clientInfo": { name: "guide", version: "1.0.0" },
          "io.modelcontextprotocol/clientCapabilities": {}
        }
      }
    })
  }
}

/** A `tools/call` of the stateless revision. */
export const call = (name: string, args: JsonRpc.JsonObject = {}, headers?: Headers) =>
  modern("tools/call", { name, arguments: args }, headers)

/** A message of a session-based revision. */
export const classic = (message: JsonRpc.JsonObject, headers: Headers = {}) => ({
  method: "POST",
  headers: { ...posting, ...headers } as Headers,
  body: JSON.stringify({ jsonrpc: "2.0", ...message })
})

/** The request that opens a session. */
export const initialize = (headers?: Headers) =>
  classic({
    id: 0,
    method: "initialize",
    params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "guide", version: "1.0.0" } }
  }, headers)

interface Answered {
  readonly error?: JsonRpc.ErrorObject
  readonly result?: { readonly content?: ReadonlyArray<{ readonly text: string }> }
}

/** The text of a result, or the code and the message of an error. */
export const textOf = async (response: Response): Promise<string> => {
  const { error, result } = await response.json() as Answered
  return error === undefined
    ? (result?.content ?? []).map(({ text }) => text).join("")
    : `${error.code} ${error.message}`
}
