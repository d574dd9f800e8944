/**
 * The reference: the cost of Node itself. It collects the body, parses JSON, switches on the method and writes the
 * response with a content length, almost the same bytes as Skein. It has no checks and no limits; a session is an id in
 * a set.
 */
import { randomUUID } from "node:crypto"
import { createServer, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"

const serverInfo = { name: "bare", version: "1.0.0" }
const capabilities = { tools: { listChanged: true } }
const signature = { "io.modelcontextprotocol/serverInfo": serverInfo }
const integer = { type: "integer", minimum: Number.MIN_SAFE_INTEGER, maximum: Number.MAX_SAFE_INTEGER }

const more = Number(process.argv.find((arg) => arg.startsWith("--tools="))?.slice("--tools=".length) ?? 2) - 2
const tools = [
  {
    name: "echo",
    description: "Repeats a message",
    inputSchema: {
      type: "object",
      properties: { message: { type: "string" }, times: integer },
      required: ["message", "times"],
      additionalProperties: true
    }
  },
  {
    name: "count",
    description: "Counts and reports progress",
    inputSchema: { type: "object", properties: { to: integer }, required: ["to"], additionalProperties: true }
  },
  ...Array.from({ length: more }, (_, index) => ({
    name: `tool-${index}`,
    description: `Does thing number ${index}`,
    inputSchema: {
      type: "object",
      properties: { path: { type: "string" }, lines: integer },
      required: ["path", "lines"],
      additionalProperties: true
    }
  }))
]

const sessions = new Set<string>()
const json = "application/json"
const sse = {
  "content-type": "text/event-stream",
  "cache-control": "no-cache, no-transform",
  "x-accel-buffering": "no"
}

const reply = (res: ServerResponse, message: object, session?: string): void => {
  const body = JSON.stringify(message)
  const length = Buffer.byteLength(body)
  res.writeHead(
    200,
    session === undefined
      ? { "content-type": json, "content-length": length }
      : { "content-type": json, "content-length": length, "mcp-session-id": session }
  )
  res.end(body)
}

const event = (message: object): string => `data: ${JSON.stringify(message)}\n\n`

const result = (params: any, members: object): object =>
  params?._meta?.["io.modelcontextprotocol/protocolVersion"] === undefined
    ? members
    : { resultType: "complete", ...members, _meta: signature }

const count = async (res: ServerResponse, id: unknown, params: any): Promise<void> => {
  const { to } = params.arguments
  const { progressToken } = params._meta
  res.writeHead(200, sse)
  for (let progress = 1; progress <= to; progress++) {
    const message = { jsonrpc: "2.0", method: "notifications/progress", params: { progressToken, progress, total: to } }
    if (!res.write(event(message))) await new Promise((drained) => res.once("drain", drained))
  }
  const content = [{ type: "text", text: `Counted to ${to}` }]
  res.end(event({ jsonrpc: "2.0", id, result: result(params, { content }) }))
}

const answer = (res: ServerResponse, { id, method, params }: any): void => {
  switch (method) {
    case "initialize": {
      const session = randomUUID()
      sessions.add(session)
      const opened = { protocolVersion: params.protocolVersion, capabilities, serverInfo }
      return reply(res, { jsonrpc: "2.0", id, result: opened }, session)
    }
    case "tools/list": {
      const listed = params?._meta === undefined ? { tools } : { tools, ttlMs: 0, cacheScope: "private" }
      return reply(res, { jsonrpc: "2.0", id, result: result(params, listed) })
    }
    case "tools/call": {
      if (params.name === "count") return void count(res, id, params)
      const { message, times } = params.arguments
      const content = [{ type: "text", text: message.repeat(times) }]
      return reply(res, { jsonrpc: "2.0", id, result: result(params, { content }) })
    }
    case "subscriptions/listen": {
      res.writeHead(200, sse)
      const _meta = { "io.modelcontextprotocol/subscriptionId": id }
      const { notifications } = params
      const method = "notifications/subscriptions/acknowledged"
      return void res.write(event({ jsonrpc: "2.0", method, params: { _meta, notifications } }))
    }
    default:
      res.writeHead(202).end()
  }
}

const server = createServer((req, res) => {
  if (req.method === "GET") {
    res.writeHead(200, sse)
    return res.flushHeaders()
  }
  let body = ""
  req.setEncoding("utf8")
  req.on("data", (chunk: string) => {
    body += chunk
  })
  req.on("end", () => answer(res, JSON.parse(body)))
})
server.listen(0, "127.0.0.1", () => console.log((server.address() as AddressInfo).port))
