/**
 * The nodes of a fleet as child processes, and a client that chooses the node of each request.
 */
import type { ChildProcess } from "node:child_process"
import { once } from "node:events"
import * as http from "node:http"
import { createInterface } from "node:readline"
import { kill, launch } from "../lib/childProcesses.ts"
import { cpuTimeOf } from "../lib/machine.ts"

export interface Node {
  readonly child: ChildProcess
  readonly port: number
}

const agent = new http.Agent({ keepAlive: true })

/** Starts a node. With `home` a session stays where it was opened, and the other nodes pass its requests on. */
export const startNode = async (url: string, sessions: "shared" | "home" = "shared"): Promise<Node> => {
  const file = new URL("./node.ts", import.meta.url).pathname
  const reporter = new URL("../http/memoryReporter.ts", import.meta.url).href
  const options = ["--expose-gc", "--conditions=@skein/source", "--import", reporter]
  const command = [process.execPath, ...options, file, url, sessions]
  const child = launch("server", command, { stdio: ["ignore", "pipe", "inherit", "ipc"] })
  const port = await new Promise<number>((resolve, reject) => {
    createInterface({ input: child.stdout! }).once("line", (line) => resolve(Number(line)))
    child.once("exit", () => reject(new Error("a node exited during its start")))
  })
  return { child, port }
}

/** Stops nodes, and closes the connections to them. */
export const stopNodes = async (nodes: ReadonlyArray<Node>): Promise<void> => {
  for (const { child } of nodes) await kill(child)
  agent.destroy()
}

/** The processor time that nodes have used so far, in milliseconds. */
export const cpuOf = (nodes: ReadonlyArray<Node>): number =>
  nodes.reduce((sum, { child }) => sum + (cpuTimeOf(child.pid!) ?? Number.NaN), 0)

/** The heap and the memory outside of it that a node uses after a garbage collection, in bytes. */
export const memoryOf = async ({ child }: Node): Promise<number> => {
  const reported = once(child, "message")
  child.send("memory")
  const [usage] = await reported as [NodeJS.MemoryUsage]
  return usage.heapUsed + usage.external
}

interface Reply {
  readonly session: string
  readonly text: string
}

/** Posts a message, and reads the response. `onData` receives it as it arrives. */
export const post = (
  { port }: Node,
  session: string | undefined,
  body: object,
  onData?: (text: string) => void
): Promise<Reply> =>
  new Promise((resolve, reject) => {
    const headers = {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      ...(session === undefined ? {} : { "mcp-session-id": session, "mcp-protocol-version": "2025-11-25" })
    }
    const request = http.request(
      { host: "127.0.0.1", port, path: "/mcp", method: "POST", headers, agent },
      (response) => {
        let text = ""
        response.setEncoding("utf8").on("data", (chunk: string) => {
          text += chunk
          onData?.(text)
        })
        response.on("end", () => {
          if (response.statusCode! >= 300) reject(new Error(`${response.statusCode} ${text}`))
          else resolve({ session: String(response.headers["mcp-session-id"]), text })
        })
      }
    )
    request.on("error", reject)
    request.end(JSON.stringify({ jsonrpc: "2.0", ...body }))
  })

const initialize = {
  id: 0,
  method: "initialize",
  params: {
    protocolVersion: "2025-11-25",
    capabilities: { elicitation: {} },
    clientInfo: { name: "bench", version: "1" }
  }
}
const initialized = { method: "notifications/initialized" }
export const echo = { id: 1, method: "tools/call", params: { name: "echo", arguments: { text: "hello" } } }
const ask = { id: 2, method: "tools/call", params: { name: "ask", arguments: {} } }

/** Opens a session at a node, and completes its handshake at another one. */
export const open = async (at: Node, then: Node): Promise<string> => {
  const { session } = await post(at, undefined, initialize)
  await post(then, session, initialized)
  return session
}

/** The milliseconds from a question to the result of its call, when the client answers it at `other`. */
export const answer = async (asking: Node, other: Node, session: string): Promise<number> => {
  let asked = 0
  await post(asking, session, ask, (text) => {
    const id = /"id":(\d+),"method":"elicitation\/create"|"method":"elicitation\/create".*?"id":(\d+)/.exec(text)
    if (asked !== 0 || id === null) return
    asked = performance.now()
    const result = { action: "accept", content: { sure: true } }
    post(other, session, { id: Number(id[1] ?? id[2]), result }).catch((error: unknown) => console.error(error))
  })
  return performance.now() - asked
}
