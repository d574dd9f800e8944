/** Servers over HTTP that behave like those that a client meets: what each does with a request that it does not expect. */
import * as Effect from "effect/Effect"
import * as Deferred from "effect/Deferred"
import type { Hit, Json } from "./script.ts"

export type Script = (hit: Hit) => void

export const serverInfo = { name: "scripted", version: "1.0.0" }
export const capabilities = { tools: {} }

/** What `hits` says of itself, shortly: the verb, and what was asked. */
export const asked = (hits: ReadonlyArray<Hit>): ReadonlyArray<string> =>
  hits.map(({ json, method }) => json === undefined ? method : `${method} ${json.method}`)

export const fault = (code: number, message: string, data?: unknown): Json => ({
  jsonrpc: "2.0",
  id: null,
  error: data === undefined ? { code, message } : { code, message, data }
})

const opened = (protocolVersion: string): Json => ({
  protocolVersion,
  capabilities,
  serverInfo,
  instructions: "Be kind."
})

export const discovered = (supportedVersions: ReadonlyArray<string> = ["2026-07-28"]): Json => ({
  resultType: "complete",
  supportedVersions,
  capabilities,
  instructions: "Be kind.",
  _meta: { "io.modelcontextprotocol/serverInfo": serverInfo },
  ttlMs: 0,
  cacheScope: "private"
})

const event = (message: Json) => `event: message\ndata: ${JSON.stringify(message)}\n\n`

/** Calls of tools are answered in any revision. */
const answers = ({ json }: Hit): Json => ({
  jsonrpc: "2.0",
  id: json.id,
  ...(json.method === "tools/call"
    ? { result: { resultType: "complete", content: [{ type: "text", text: json.params.name }] } }
    : { error: { code: -32601, message: "Method not found" } })
})

/** The SDK v1 with sessions: whatever comes without a session and is no `initialize` is refused with 400 and -32000. */
export const stateful: Script = (hit) => {
  if (hit.method !== "POST") return hit.reply(hit.method === "DELETE" ? 200 : 405)
  const { headers, json } = hit
  if (json.method === "initialize") {
    const head = { "mcp-session-id": "s-1" }
    return hit.stream(event({ jsonrpc: "2.0", id: json.id, result: opened("2025-06-18") }), head).end()
  }
  if (headers["mcp-session-id"] !== "s-1") return hit.say(fault(-32000, "Bad Request: Server not initialized"), {}, 400)
  if (json.id === undefined) return hit.reply(202)
  hit.stream(event(answers(hit))).end()
}

/** The SDK v1 without sessions: a header that it does not know is refused with 400 and -32000, an unknown method with -32601. */
export const stateless = (checksVersion: boolean): Script => (hit) => {
  if (hit.method !== "POST") return hit.say(fault(-32000, "Method not allowed."), {}, 405)
  const { headers, json } = hit
  if (checksVersion && headers["mcp-protocol-version"] === "2026-07-28") {
    return hit.say(fault(-32000, "Bad Request: Unsupported protocol version"), {}, 400)
  }
  if (json.id === undefined) return hit.reply(202)
  const answer = json.method === "initialize"
    ? { jsonrpc: "2.0", id: json.id, result: opened("2025-11-25") }
    : answers(hit)
  hit.stream(event(answer)).end()
}

/** The request era alone, in words of its own: `initialize` misses the headers that it wants. */
export const modern: Script = (hit) => {
  if (hit.method !== "POST") return hit.reply(405)
  const { headers, json } = hit
  if (headers["mcp-method"] !== json.method) {
    return hit.say({ ...fault(-32020, "Header mismatch: Mcp-Method is missing"), id: json.id ?? null }, {}, 400)
  }
  if (json.method === "server/discover") return hit.result(discovered())
  if (json.method !== "tools/call") return hit.say({ ...fault(-32601, "Method not found"), id: json.id }, {}, 404)
  hit.say(answers(hit))
}

/** HTTP+SSE alone, as Express answers what it has no route for. */
export const sseOnly = (refusal: 404 | 405 | 400 = 404): Script => {
  let stream: Hit | undefined
  return (hit) => {
    if (hit.method === "GET" && hit.path === "/mcp") {
      stream = hit.stream("event: endpoint\ndata: /messages?sessionId=1\n\n")
      return
    }
    if (hit.path !== "/messages?sessionId=1") {
      return hit.reply(refusal, "<pre>Cannot POST /mcp</pre>", { "content-type": "text/html" })
    }
    hit.reply(202, "Accepted")
    const { json } = hit
    if (json.id === undefined) return
    const answer = json.method === "initialize"
      ? { jsonrpc: "2.0", id: json.id, result: opened("2024-11-05") }
      : answers(hit)
    stream!.write(event(answer))
  }
}

/** Answers everything alike. */
export const always =
  (status: number, body: string, type = "text/html", headers: Record<string, string> = {}): Script => (hit) =>
    hit.reply(status, body, { "content-type": type, ...headers })

/** Says when a request of that method has come, and leaves it to the test. */
export const holding = (method: string, rest: Script): readonly [Script, Effect.Effect<Hit>] => {
  const held = Deferred.makeUnsafe<Hit>()
  return [
    (hit) => hit.json?.method === method ? Effect.runSync(Effect.asVoid(Deferred.succeed(held, hit))) : rest(hit),
    Deferred.await(held)
  ]
}
