/**
 * Lists the tools of the configured servers, or calls one: `npm run dev -- example reserve '{"day":"Monday"}'`.
 */
import * as ClientPool from "@skein/client/ClientPool"
import * as NodeConfig from "@skein/client/NodeConfig"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { createInterface } from "node:readline/promises"
import { answering, type Ask, callTool, listTools } from "./host.ts"

const ask: Ask = (question) =>
  Effect.promise(async (signal) => {
    const terminal = createInterface({ input: process.stdin, output: process.stdout })
    try {
      return await terminal.question(question, { signal })
    } finally {
      terminal.close()
    }
  })

const servers = ClientPool.layerFromConfig(NodeConfig.file(process.env["MCP_CONFIG"] ?? "mcp.json"))
const Servers = Layer.provide(servers, answering(ask))

const [server, tool, args = "{}"] = process.argv.slice(2)
const program = server === undefined || tool === undefined
  ? Effect.map(listTools, (lines) => lines.join("\n"))
  : callTool(server, tool, JSON.parse(args))

Effect.runPromise(Effect.provide(program, Servers)).then(
  (text) => console.log(text),
  (error: Error) => {
    console.error(error.message)
    process.exitCode = 1
  }
)
