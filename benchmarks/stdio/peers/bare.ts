/**
 * The reference: the cost of Node itself. It splits lines, parses JSON, switches on the method and writes the response.
 * It has no checks, no cancellation, no limits, and one tool. It writes each response separately. With `--join` it
 * writes the responses to all messages of one read together, which is the minimum for Node.
 */
const join = process.argv.includes("--join")
const serverInfo = { name: "bare", version: "1.0.0" }
const capabilities = { tools: {} }
const signature = { "io.modelcontextprotocol/serverInfo": serverInfo }
const greet = {
  name: "greet",
  description: "Greets a person by name",
  inputSchema: { type: "object", properties: { name: { type: "string" } }, required: ["name"] }
}

const answer = (method: string, params: any): unknown => {
  switch (method) {
    case "initialize":
      return { protocolVersion: params.protocolVersion, capabilities, serverInfo }
    case "server/discover":
      return { resultType: "complete", supportedVersions: ["2026-07-28"], capabilities, ttlMs: 0, cacheScope: "public" }
    case "tools/list":
      return { tools: [greet] }
    case "tools/call": {
      const content = [{ type: "text", text: `Hello, ${params.arguments.name}!` }]
      return params._meta === undefined ? { content } : { resultType: "complete", content, _meta: signature }
    }
    default:
      return {}
  }
}

let rest = ""
process.stdin.setEncoding("utf8")
process.stdin.on("data", (chunk: string) => {
  const lines = (rest + chunk).split("\n")
  rest = lines.pop()!
  let joined = ""
  for (const line of lines) {
    const { id, method, params } = JSON.parse(line)
    if (id === undefined) continue
    const out = JSON.stringify({ jsonrpc: "2.0", id, result: answer(method, params) }) + "\n"
    if (join) joined += out
    else process.stdout.write(out)
  }
  if (join) process.stdout.write(joined)
})
