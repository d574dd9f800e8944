/** Scripts that respond like existing servers over HTTP, including to requests that those servers do not expect. */
import * as Effect from "effect/Effect"
import * as Deferred from "effect/Deferred"
import type { Exchange, Json } from "./connection.ts"

export type Script = (hit: Exchange) => void

export const serverInfo = { name: "scripted", version: "1.0.0" }
export const capabilities = { tools: {} }

/** The HTTP method and the JSON-RPC method of each request, as one text. */
export const asked = (exchanges: ReadonlyArray<Exchange>): ReadonlyArray<string> =>
  exchanges.map(({ json, method }) => json === undefined ? method : `${method} ${json.method}`)

export const fault = (code: number, message: string, data?: unknown): Json => ({
  jsonrpc: "2.0",
  id: null,
  error: data === undefined ? { code, message } : { code, message, data }
})

const opened = (protocolVersion: string): Json => ({
  protocolVersion,
  capabilities,
  serverInfo,
  instructions: "Read the script."
})

export const discovered = (supportedVersions: ReadonlyArray<string> = ["2026-07-28"]): Json => ({
  resultType: "complete",
  supportedVersions,
  capabilities,
  instructions: "Read the script.",
  _meta: { "io.modelcontextprotocol/serverInfo": serverInfo },
  ttlMs: 0,
  cacheScope: "private"
})

const event = (message: Json) => `event: message\ndata: ${JSON.stringify(message)}\n\n`

/** The response to a tool call in any revision; an error for other requests. */
const answers = ({ json }: Exchange): Json => ({
  jsonrpc: "2.0",
  id: json.id,
  ...(json.method === "tools/call"
    ? { result: { resultType: "complete", content: [{ type: "text", text: json.params.name }] } }
    : { error: { code: -32601, message: "Method not found" } })
})

/** The SDK v1 with sessions: responds 400 and -32000 to a request without a session id that is not `initialize`. */
export const stateful: Script = (hit) => {
  if (hit.method !== "POST") return hit.respond(hit.method === "DELETE" ? 200 : 405)
  const { headers, json } = hit
  if (json.method === "initialize") {
    const head = { "mcp-session-id": "s-1" }
    return hit.openStream(event({ jsonrpc: "2.0", id: json.id, result: opened("2025-06-18") }), head).end()
  }
  if (headers["mcp-session-id"] !== "s-1") {
    return hit.respondJson(fault(-32000, "Bad Request: Server not initialized"), {}, 400)
  }
  if (json.id === undefined) return hit.respond(202)
  hit.openStream(event(answers(hit))).end()
}

/**
 * The SDK v1 without sessions: responds 400 and -32000 to an unknown `MCP-Protocol-Version`, and -32601 to an unknown
 * method.
 */
export const stateless = (checksVersion: boolean): Script => (hit) => {
  if (hit.method !== "POST") return hit.respondJson(fault(-32000, "Method not allowed."), {}, 405)
  const { headers, json } = hit
  if (checksVersion && headers["mcp-protocol-version"] === "2026-07-28") {
    return hit.respondJson(fault(-32000, "Bad Request: Unsupported protocol version"), {}, 400)
  }
  if (json.id === undefined) return hit.respond(202)
  const answer = json.method === "initialize"
    ? { jsonrpc: "2.0", id: json.id, result: opened("2025-11-25") }
    : answers(hit)
  hit.openStream(event(answer)).end()
}

/** A server of 2026-07-28 only. It refuses `initialize` because the `Mcp-Method` header is missing. */
export const modern: Script = (hit) => {
  if (hit.method !== "POST") return hit.respond(405)
  const { headers, json } = hit
  if (headers["mcp-method"] !== json.method) {
    return hit.respondJson({ ...fault(-32020, "Header mismatch: Mcp-Method is missing"), id: json.id ?? null }, {}, 400)
  }
  if (json.method === "server/discover") return hit.respondResult(discovered())
  if (json.method !== "tools/call") {
    return hit.respondJson({ ...fault(-32601, "Method not found"), id: json.id }, {}, 404)
  }
  hit.respondJson(answers(hit))
}

/** HTTP+SSE only. It responds to a POST of another path as Express responds to a path without a route. */
export const sseOnly = (refusal: 404 | 405 | 400 = 404): Script => {
  let stream: Exchange | undefined
  return (hit) => {
    if (hit.method === "GET" && hit.path === "/mcp") {
      stream = hit.openStream("event: endpoint\ndata: /messages?sessionId=1\n\n")
      return
    }
    if (hit.path !== "/messages?sessionId=1") {
      return hit.respond(refusal, "<pre>Cannot POST /mcp</pre>", { "content-type": "text/html" })
    }
    hit.respond(202, "Accepted")
    const { json } = hit
    if (json.id === undefined) return
    const answer = json.method === "initialize"
      ? { jsonrpc: "2.0", id: json.id, result: opened("2024-11-05") }
      : answers(hit)
    stream!.write(event(answer))
  }
}

/** Responds to every request in the same way. */
export const always =
  (status: number, body: string, type = "text/html", headers: Record<string, string> = {}): Script => (hit) =>
    hit.respond(status, body, { "content-type": type, ...headers })

/** Hands the first request of that method to the test, and passes the others to the script. */
export const holding = (method: string, rest: Script): readonly [Script, Effect.Effect<Exchange>] => {
  const held = Deferred.makeUnsafe<Exchange>()
  return [
    (hit) => hit.json?.method === method ? Effect.runSync(Effect.asVoid(Deferred.succeed(held, hit))) : rest(hit),
    Deferred.await(held)
  ]
}
