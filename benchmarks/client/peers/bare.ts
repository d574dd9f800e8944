/**
 * The reference: the cost of Node itself. `http.request` with keep-alive, `JSON.stringify` and `JSON.parse`. It has no
 * checks, limits or timeouts, and reports errors to the caller only.
 */
import { Agent, request as send } from "node:http"
import { meta, revisionOf } from "../../stdio/messages.ts"
import { type Connect, runConcurrently, textOf } from "../testClient.ts"

const agent = new Agent({ keepAlive: true })

export const connect: Connect = async ({ era, url: address }) => {
  const url = new URL(address)
  const target = { agent, hostname: url.hostname, port: url.port, path: url.pathname }
  const common = {
    "content-type": "application/json",
    accept: "application/json, text/event-stream",
    "mcp-protocol-version": revisionOf[era]
  }
  let session: string | undefined
  let lastId = 0
  let stream: ReturnType<typeof send> | undefined

  const post = (message: object, headers: Record<string, string>): Promise<any> =>
    new Promise((resolve, reject) => {
      const body = JSON.stringify(message)
      const all: Record<string, string | number> = {
        ...common,
        ...headers,
        "content-length": Buffer.byteLength(body)
      }
      if (session !== undefined) all["mcp-session-id"] = session
      const outgoing = send({ ...target, method: "POST", headers: all }, (incoming) => {
        session ??= incoming.headers["mcp-session-id"] as string | undefined
        let text = ""
        incoming.setEncoding("utf8")
        incoming.on("data", (chunk: string) => {
          text += chunk
        })
        incoming.on("end", () => {
          if (text === "") return resolve(undefined)
          const json = incoming.headers["content-type"] === "application/json"
            ? text
            : text.slice(text.indexOf("data: ") + 6, text.indexOf("\n\n"))
          resolve(JSON.parse(json).result)
        })
      })
      outgoing.on("error", reject)
      outgoing.end(body)
    })

  const request = (method: string, params: Record<string, unknown>, name?: string): Promise<any> =>
    era === "session"
      ? post({ jsonrpc: "2.0", id: ++lastId, method, params }, {})
      : post(
        { jsonrpc: "2.0", id: ++lastId, method, params: { ...params, _meta: meta } },
        name === undefined ? { "mcp-method": method } : { "mcp-method": method, "mcp-name": name }
      )

  if (era === "session") {
    const clientInfo = { name: "bench", version: "1.0.0" }
    await request("initialize", { protocolVersion: revisionOf.session, capabilities: {}, clientInfo })
    await post({ jsonrpc: "2.0", method: "notifications/initialized" }, {})
    const headers = { accept: "text/event-stream", "mcp-session-id": session! }
    stream = send({ ...target, method: "GET", headers }, (incoming) => incoming.resume().on("error", () => {}))
    stream.on("error", () => {})
    stream.end()
  }

  return {
    discover: () => request("tools/list", {}),
    drive: (job, inFlight, turns) =>
      runConcurrently(inFlight, async () => {
        for (let turn = turns.next(); turn !== undefined; turn = turns.next()) {
          if (job === "greet") {
            const params = { name: job, arguments: { name: `n${turn}` } }
            turns.greeted(turn, textOf(await request("tools/call", params, job)))
          } else if (job === "report" || job === "invalid") {
            const params = { name: job, arguments: { id: turn } }
            turns.reported(turn, (await request("tools/call", params, job)).structuredContent)
          } else turns.listed((await request("tools/list", {})).tools)
        }
      }),
    kept: undefined,
    close: async () => {
      stream?.destroy()
    }
  }
}
