/**
 * The well-behaved part of a faulty server: the responses to requests in every revision, and a few tools.
 */
import * as Effect from "effect/Effect"
import type { Scenario } from "../Scenario.ts"
import type { Json } from "./faultyTexts.ts"

/** A tool call that was carried out. */
export interface ToolCall {
  /** The id of the JSON-RPC request. */
  readonly id: unknown
  /** The name of the tool. */
  readonly tool: string
  /** The argument `key`, which identifies the call. */
  readonly key: string | undefined
}

/** How often the call with that key was carried out. */
export const callCountOf = (calls: ReadonlyArray<ToolCall>, key: string): number =>
  calls.filter((call) => call.key === key).length

/** Sends messages that belong to one request. */
export interface Responder {
  /** Sends a message before the response. */
  readonly send: (message: Json) => void
  /** Sends a request to the client, up to 2025-11-25, and waits for the response. */
  readonly request: (method: string, params: Json) => Effect.Effect<Json>
}

/** The requests to one client that wait for its responses. */
export class ClientRequests {
  readonly #pending = new Map<unknown, (response: Effect.Effect<Json>) => void>()
  #count = 0

  /** A responder whose messages are sent by `send`, as JSON. */
  responder(send: (text: string) => void): Responder {
    return {
      send: (message) => send(JSON.stringify(message)),
      request: (method, params) =>
        Effect.callback<Json>((resume) => {
          const id = `faulty-${this.#count++}`
          this.#pending.set(id, resume)
          send(JSON.stringify({ jsonrpc: "2.0", id, method, params }))
          return Effect.sync(() => void this.#pending.delete(id))
        })
    }
  }

  /** Completes the request that a response of the client belongs to. */
  complete(response: Json): void {
    const resume = this.#pending.get(response["id"])
    this.#pending.delete(response["id"])
    resume?.(Effect.succeed(response))
  }
}

const object = (value: unknown): Json => typeof value === "object" && value !== null ? value as Json : {}
const number = (value: unknown, fallback: number): number => typeof value === "number" ? value : fallback

const serverInfo = { name: "faulty", version: "1.0.0" }
const capabilities = { tools: { listChanged: true }, resources: { subscribe: true, listChanged: true }, logging: {} }
const key = { type: "string", description: "Identifies the call in a test." }

const tool = (name: string, description: string, properties: Json = {}) => ({
  name,
  description,
  inputSchema: { type: "object", properties: { key, ...properties } }
})

const tools = [
  tool("echo", "Returns its key."),
  tool("add", "Adds two numbers.", { a: { type: "number" }, b: { type: "number" } }),
  tool("progress", "Reports progress n times.", { n: { type: "integer" } }),
  tool("ask", "Asks the user for a word and returns its key and the user's answer."),
  tool("slow", "Takes ms milliseconds.", { ms: { type: "integer" } })
]

const form = {
  message: "A word, please",
  requestedSchema: { type: "object", properties: { word: { type: "string" } }, required: ["word"] }
}

export type ProtocolHandler = ReturnType<typeof makeProtocolHandler>

/** Answers requests as a well-behaved server of one revision. */
export const makeProtocolHandler = (scenario: Scenario, onCall: (call: ToolCall) => void) => {
  const revision: string = scenario.revision ?? "2025-11-25"
  /** Whether the revision is stateless (2026-07-28). */
  const isStateless: boolean = revision === "2026-07-28"

  /** The response to a request. */
  const respond = (request: Json, responder: Responder): Effect.Effect<Json> => {
    const { id } = request
    return Effect.map(
      Effect.suspend(() => result(request, responder)),
      (result) => {
        if ("error" in result) return { jsonrpc: "2.0", id, error: result["error"] }
        const complete = isStateless && result["resultType"] === undefined
          ? { resultType: "complete", ...result }
          : result
        return { jsonrpc: "2.0", id, result: complete }
      }
    )
  }

  const result = (request: Json, responder: Responder): Effect.Effect<Json> => {
    const { method } = request
    const params = object(request["params"])
    const caching = isStateless ? { ttlMs: 0, cacheScope: "private" } : {}
    switch (method) {
      case "server/discover": {
        if (!isStateless) break
        const _meta = { "io.modelcontextprotocol/serverInfo": serverInfo }
        return Effect.succeed({ supportedVersions: [revision], capabilities, ...caching, _meta })
      }
      case "initialize":
        if (isStateless) break
        return Effect.succeed({ protocolVersion: revision, capabilities, serverInfo })
      case "tools/list":
        return Effect.succeed({ tools, ...caching })
      case "resources/list":
        return Effect.succeed({ resources: [{ name: "notes", uri: "faulty://notes" }], ...caching })
      case "resources/read":
        return Effect.succeed({ contents: [{ uri: String(params["uri"]), text: "A note." }], ...caching })
      case "ping":
      case "logging/setLevel":
      case "resources/subscribe":
      case "resources/unsubscribe":
        return Effect.succeed({})
      case "subscriptions/listen":
        responder.send({
          jsonrpc: "2.0",
          method: "notifications/subscriptions/acknowledged",
          params: {
            notifications: object(params["notifications"]),
            _meta: { "io.modelcontextprotocol/subscriptionId": request["id"] }
          }
        })
        return Effect.never
      case "tools/call":
        return call(request, params, responder)
    }
    return Effect.succeed({ error: { code: -32601, message: `Method not found: ${String(method)}` } })
  }

  const call = (request: Json, params: Json, responder: Responder): Effect.Effect<Json> => {
    const args = object(params["arguments"])
    const tool = String(params["name"])
    const key = typeof args["key"] === "string" ? args["key"] : undefined
    const record = (): void => onCall({ id: request["id"], tool, key })
    const result = (...texts: ReadonlyArray<string>) => ({ content: texts.map((text) => ({ type: "text", text })) })
    switch (tool) {
      case "echo":
        record()
        return Effect.succeed(result(key ?? ""))
      case "add":
        record()
        return Effect.succeed(result(String(number(args["a"], 0) + number(args["b"], 0))))
      case "slow":
        record()
        return Effect.as(Effect.sleep(number(args["ms"], 1_000)), result(key ?? ""))
      case "progress": {
        record()
        const token = object(params["_meta"])["progressToken"]
        const total = number(args["n"], 3)
        for (let progress = 1; token !== undefined && progress <= total; progress++) {
          responder.send({
            jsonrpc: "2.0",
            method: "notifications/progress",
            params: { progressToken: token, progress, total }
          })
        }
        return Effect.succeed(result(key ?? ""))
      }
      case "ask": {
        if (!isStateless) {
          record()
          return Effect.map(
            responder.request("elicitation/create", form),
            (answer) => result(key ?? "", JSON.stringify(answer["result"] ?? answer["error"] ?? null))
          )
        }
        const answered = params["inputResponses"]
        if (answered === undefined) {
          const inputRequests = { word: { method: "elicitation/create", params: { mode: "form", ...form } } }
          return Effect.succeed({ resultType: "input_required", inputRequests, requestState: key ?? "state" })
        }
        record()
        return Effect.succeed(result(key ?? "", JSON.stringify(object(answered)["word"] ?? null)))
      }
      default:
        return Effect.succeed({ error: { code: -32602, message: `Unknown tool: ${tool}` } })
    }
  }

  return { revision, isStateless, respond }
}
