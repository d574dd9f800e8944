/** A server over stdio for the tests of pools, as the text of a program. */

/**
 * Returns a server with one tool. Its name is the first argument, or else `t`, and it returns facts about the process.
 * The program runs `before` first.
 */
export const toolServer = (before = ""): string => `
  ${before}
  const answer = (id, body) => console.log(JSON.stringify({ jsonrpc: "2.0", id, ...body }))
  require("node:readline").createInterface({ input: process.stdin }).on("line", (line) => {
    const { id, method } = JSON.parse(line)
    const serverInfo = { name: "s", version: "1" }
    if (method === "initialize") {
      answer(id, { result: { protocolVersion: "2025-11-25", capabilities: { tools: {} }, serverInfo } })
    } else if (method === "tools/list") {
      answer(id, { result: { tools: [{ name: process.argv[1] ?? "t", inputSchema: { type: "object" } }] } })
    } else if (method === "tools/call") {
      const { A, B, C } = process.env
      const facts = { pid: process.pid, args: process.argv.slice(1), cwd: process.cwd(), env: { A, B, C } }
      answer(id, { result: { content: [], structuredContent: facts } })
    } else if (id !== undefined) answer(id, { error: { code: -32601, message: "no" } })
  })`
