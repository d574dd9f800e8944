/**
 * The one server of the race: raw `node:http`, which answers both eras from texts that are ready but for their numbers. It checks
 * nothing. The path says what it is like: `/session/json`, `/request/sse`; with `/many` at the end it lists many tools.
 *
 * Its first line on stdout is its port.
 */
import { createServer, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { revisionOf } from "../stdio/wire.ts"
import { greeting, manyTools, report, tools, ttlMs } from "./wire.ts"

const serverInfo = { name: "bare", version: "1.0.0" }
const capabilities = { tools: { listChanged: true } }
const modern = { resultType: "complete", _meta: { "io.modelcontextprotocol/serverInfo": serverInfo } }

/** The text of an answer, in the pieces between its id and the number of its call. */
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
const reported = (structuredContent: { readonly id: unknown }): object => ({
  content: [{ type: "text", text: JSON.stringify(structuredContent).replace("\"%n%\"", "%n%") }],
  structuredContent
})

const answersOf = (more: object, cached: object) => ({
  greet: pieces({ ...more, content: [{ type: "text", text: greeting("%n%") }] }),
  report: pieces({ ...more, ...reported(report("%n%")) }),
  lie: pieces({ ...more, ...reported({ ...report("%n%"), title: 1 } as { readonly id: unknown }) }),
  few: pieces({ ...more, tools, ...cached }),
  many: pieces({ ...more, tools: manyTools, ...cached })
})

const answers = {
  session: answersOf({}, {}),
  request: answersOf(modern, { ttlMs, cacheScope: "public" })
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

const refuse = (res: ServerResponse, status: number, id: unknown, code: number, message: string): void => {
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
      if (name === "greet") return send(res, fill(answers[era].greet, id, args.name.slice(1)), sse)
      return send(res, fill(answers[era][name as "report" | "lie"], id, args.id), sse)
    }
    case "tools/list":
      return send(res, fill(answers[era][path.endsWith("/many") ? "many" : "few"], id, 0), sse)
    case "initialize":
      if (era === "request") return refuse(res, 400, id, -32601, "Method not found")
      res.setHeader("mcp-session-id", `session-${++sessions}`)
      return send(res, fill(opened, id, 0), sse)
    case "server/discover":
      // As SDK v1 says it to whoever does not begin with `initialize`.
      if (era === "session") return refuse(res, 400, null, -32000, "Bad Request: Server not initialized")
      return send(res, fill(discovered, id, 0), sse)
    default:
      if (id !== undefined) return refuse(res, era === "session" ? 200 : 404, id, -32601, "Method not found")
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
// How long a socket waits is left to the clients.
server.keepAliveTimeout = 600_000
server.listen(0, "127.0.0.1", 4_096, () => console.log((server.address() as AddressInfo).port))
process.on("disconnect", () => process.exit())
