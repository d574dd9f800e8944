/**
 * The server of the client benchmark: plain `node:http` with prepared responses for both eras. It checks nothing. The
 * path selects its behavior: `/session/json` or `/request/sse`, for example. With `/long` at the end it lists many
 * tools.
 *
 * Its first line on stdout is its port.
 */
import { createServer, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { revisionOf } from "../stdio/messages.ts"
import { greeting, longTools, report, tools, ttlMs } from "./serverData.ts"

const serverInfo = { name: "bare", version: "1.0.0" }
const capabilities = { tools: { listChanged: true } }
const modern = { resultType: "complete", _meta: { "io.modelcontextprotocol/serverInfo": serverInfo } }

/** The text of a response, split at the placeholders of the id and of the call's number. */
const pieces = (result: object): ReadonlyArray<string> =>
  JSON.stringify({ jsonrpc: "2.0", id: "%id%", result })
    .replaceAll(/"(%id%|%n%)"/g, "$1")
    .split(/%id%|%n%/)

const fill = (pieces: ReadonlyArray<string>, id: unknown, number: unknown): string => {
  let text = pieces[0]! + JSON.stringify(id)
  for (let index = 1; index < pieces.length - 1; index++) text += pieces[index]! + number
  return text + pieces.at(-1)!
}

/** "A tool that returns structured content SHOULD also return the serialized JSON in a TextContent block." */
const reportResult = (structuredContent: { readonly id: unknown }): object => ({
  content: [{ type: "text", text: JSON.stringify(structuredContent).replace("\"%n%\"", "%n%") }],
  structuredContent
})

const makeResponses = (more: object, cached: object) => ({
  greet: pieces({ ...more, content: [{ type: "text", text: greeting("%n%") }] }),
  report: pieces({ ...more, ...reportResult(report("%n%")) }),
  invalid: pieces({ ...more, ...reportResult({ ...report("%n%"), title: 1 } as { readonly id: unknown }) }),
  tools: pieces({ ...more, tools, ...cached }),
  longTools: pieces({ ...more, tools: longTools, ...cached })
})

const responses = {
  session: makeResponses({}, {}),
  request: makeResponses(modern, { ttlMs, cacheScope: "public" })
}

const opened = pieces({ protocolVersion: revisionOf.session, capabilities, serverInfo })
const discovered = pieces({
  ...modern,
  supportedVersions: [revisionOf.request],
  capabilities,
  serverInfo,
  ttlMs: 0,
  cacheScope: "private"
})
const stream = { "content-type": "text/event-stream", "cache-control": "no-cache" }

const send = (res: ServerResponse, text: string, sse: boolean): void => {
  const body = sse ? `event: message\ndata: ${text}\n\n` : text
  res.writeHead(
    200,
    sse ? stream : { "content-type": "application/json", "content-length": Buffer.byteLength(body) }
  )
  res.end(body)
}

const sendError = (res: ServerResponse, status: number, id: unknown, code: number, message: string): void => {
  const body = JSON.stringify({ jsonrpc: "2.0", error: { code, message }, id })
  res.writeHead(status, { "content-type": "application/json", "content-length": Buffer.byteLength(body) }).end(body)
}

let sessions = 0

const answer = (res: ServerResponse, path: string, text: string): void => {
  const { id, method, params } = JSON.parse(text)
  const era = path.startsWith("/session") ? "session" : "request"
  const sse = path.includes("/sse")
  switch (method) {
    case "tools/call": {
      const { arguments: args, name } = params
      if (name === "greet") return send(res, fill(responses[era].greet, id, args.name.slice(1)), sse)
      return send(res, fill(responses[era][name as "report" | "invalid"], id, args.id), sse)
    }
    case "tools/list":
      return send(res, fill(responses[era][path.endsWith("/long") ? "longTools" : "tools"], id, 0), sse)
    case "initialize":
      if (era === "request") return sendError(res, 400, id, -32601, "Method not found")
      res.setHeader("mcp-session-id", `session-${++sessions}`)
      return send(res, fill(opened, id, 0), sse)
    case "server/discover":
      // The response of SDK v1 to a request before `initialize`.
      if (era === "session") return sendError(res, 400, null, -32000, "Bad Request: Server not initialized")
      return send(res, fill(discovered, id, 0), sse)
    default:
      if (id !== undefined) return sendError(res, era === "session" ? 200 : 404, id, -32601, "Method not found")
      res.writeHead(202).end()
  }
}

const server = createServer((req, res) => {
  const path = req.url!
  if (req.method === "GET") {
    if (!path.startsWith("/session")) return res.writeHead(405).end()
    res.writeHead(200, stream)
    return res.flushHeaders()
  }
  if (req.method === "DELETE") return res.writeHead(200).end()
  let body = ""
  req.setEncoding("utf8")
  req.on("data", (chunk: string) => {
    body += chunk
  })
  req.on("end", () => answer(res, path, body))
})
// The clients decide how long idle sockets stay open.
server.keepAliveTimeout = 600_000
server.listen(0, "127.0.0.1", 4_096, () => console.log((server.address() as AddressInfo).port))
process.on("disconnect", () => process.exit())
