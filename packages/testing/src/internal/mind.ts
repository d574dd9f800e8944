/**
 * What a rude server has to say, were it not rude: the protocol by hand, in every revision, and a few tools.
 */
import * as Effect from "effect/Effect"
import type { Script } from "../Script.ts"
import type { Json } from "./garble.ts"

/** A tool that was called, and did what it does. */
export interface Call {
  /** The id of the request. */
  readonly id: unknown
  readonly tool: string
  /** The argument `key`, by which a test knows a call again. */
  readonly key: string | undefined
}

/** How something is said about one request. */
export interface Voice {
  /** Says it before the answer. */
  readonly say: (message: Json) => void
  /** Asks the client, in the session era, and waits for what it answers. */
  readonly ask: (method: string, params: Json) => Effect.Effect<Json>
}

const object = (value: unknown): Json => typeof value === "object" && value !== null ? value as Json : {}
const number = (value: unknown, fallback: number): number => typeof value === "number" ? value : fallback

const name = "rude"
const key = { type: "string", description: "By which a test knows the call again." }

const tool = (name: string, description: string, properties: Json = {}) => ({
  name,
  description,
  inputSchema: { type: "object", properties: { key, ...properties } }
})

const tools = [
  tool("echo", "Gives back its key."),
  tool("add", "Adds.", { a: { type: "number" }, b: { type: "number" } }),
  tool("progress", "Reports progress n times.", { n: { type: "integer" } }),
  tool("ask", "Asks the user for a word, and gives back its key and what was answered."),
  tool("slow", "Takes ms milliseconds.", { ms: { type: "integer" } })
]

const form = {
  message: "A word, please",
  requestedSchema: { type: "object", properties: { word: { type: "string" } }, required: ["word"] }
}

/** See the module's text. */
export class Mind {
  readonly revision: string
  /** Whether it is of the request era. */
  readonly modern: boolean
  readonly #called: (call: Call) => void

  constructor(script: Script, called: (call: Call) => void) {
    this.revision = script.revision ?? "2025-11-25"
    this.modern = this.revision === "2026-07-28"
    this.#called = called
  }

  /** The answer to a request. */
  answer(request: Json, voice: Voice): Effect.Effect<Json> {
    const { id } = request
    return Effect.map(
      Effect.suspend(() => this.#result(request, voice)),
      (result) => {
        if ("error" in result) return { jsonrpc: "2.0", id, error: result["error"] }
        const complete = this.modern && result["resultType"] === undefined
          ? { resultType: "complete", ...result }
          : result
        return { jsonrpc: "2.0", id, result: complete }
      }
    )
  }

  #result(request: Json, voice: Voice): Effect.Effect<Json> {
    const { method } = request
    const params = object(request["params"])
    const kept = this.modern ? { ttlMs: 0, cacheScope: "private" } : {}
    switch (method) {
      case "server/discover":
        return Effect.succeed(
          this.modern
            ? {
              supportedVersions: [this.revision],
              capabilities: this.#capabilities,
              ...kept,
              _meta: { "io.modelcontextprotocol/serverInfo": { name, version: "1.0.0" } }
            }
            : unknown(method)
        )
      case "initialize":
        return Effect.succeed(
          this.modern ? unknown(method) : {
            protocolVersion: this.revision,
            capabilities: this.#capabilities,
            serverInfo: { name, version: "1.0.0" }
          }
        )
      case "tools/list":
        return Effect.succeed({ tools, ...kept })
      case "resources/list":
        return Effect.succeed({ resources: [{ name: "rules", uri: "rude://rules" }], ...kept })
      case "resources/read":
        return Effect.succeed({ contents: [{ uri: String(params["uri"]), text: "No." }], ...kept })
      case "ping":
      case "logging/setLevel":
      case "resources/subscribe":
      case "resources/unsubscribe":
        return Effect.succeed({})
      case "subscriptions/listen":
        voice.say({
          jsonrpc: "2.0",
          method: "notifications/subscriptions/acknowledged",
          params: {
            notifications: object(params["notifications"]),
            _meta: { "io.modelcontextprotocol/subscriptionId": request["id"] }
          }
        })
        return Effect.never
      case "tools/call":
        return this.#call(request, params, voice)
      default:
        return Effect.succeed(unknown(method))
    }
  }

  get #capabilities(): Json {
    return { tools: { listChanged: true }, resources: { subscribe: true, listChanged: true }, logging: {} }
  }

  #call(request: Json, params: Json, voice: Voice): Effect.Effect<Json> {
    const args = object(params["arguments"])
    const called = String(params["name"])
    const key = typeof args["key"] === "string" ? args["key"] : undefined
    const note = (): void => this.#called({ id: request["id"], tool: called, key })
    const done = (...said: ReadonlyArray<string>) => ({ content: said.map((text) => ({ type: "text", text })) })
    switch (called) {
      case "echo":
        note()
        return Effect.succeed(done(key ?? ""))
      case "add":
        note()
        return Effect.succeed(done(String(number(args["a"], 0) + number(args["b"], 0))))
      case "slow":
        note()
        return Effect.as(Effect.sleep(number(args["ms"], 1_000)), done(key ?? ""))
      case "progress": {
        note()
        const token = object(params["_meta"])["progressToken"]
        const total = number(args["n"], 3)
        for (let progress = 1; token !== undefined && progress <= total; progress++) {
          voice.say({
            jsonrpc: "2.0",
            method: "notifications/progress",
            params: { progressToken: token, progress, total }
          })
        }
        return Effect.succeed(done(key ?? ""))
      }
      case "ask": {
        if (!this.modern) {
          note()
          return Effect.map(
            voice.ask("elicitation/create", form),
            (answer) => done(key ?? "", JSON.stringify(answer["result"] ?? answer["error"] ?? null))
          )
        }
        const answered = params["inputResponses"]
        if (answered === undefined) {
          const inputRequests = { word: { method: "elicitation/create", params: { mode: "form", ...form } } }
          return Effect.succeed({ resultType: "input_required", inputRequests, requestState: key ?? "state" })
        }
        note()
        return Effect.succeed(done(key ?? "", JSON.stringify(object(answered)["word"] ?? null)))
      }
      default:
        return Effect.succeed({ error: { code: -32602, message: `Unknown tool: ${called}` } })
    }
  }
}

const unknown = (method: unknown): Json => ({ error: { code: -32601, message: `Method not found: ${String(method)}` } })
