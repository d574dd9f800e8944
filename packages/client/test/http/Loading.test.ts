/** The modules of Node that a client over `node:http` loads. */
import { assert, describe, it } from "@effect/vitest"
import { execFileSync } from "node:child_process"

const program = `
  const [Client, NodeHttp, Effect] = await Promise.all(
    ["@skein/client/Client", "@skein/client/NodeHttp", "effect/Effect"].map((name) => import(name))
  )
  const server = process.getBuiltinModule("node:http").createServer((req, res) => res.writeHead(404).end()).listen(0)
  const url = "http://127.0.0.1:" + server.address().port
  const error = await Effect.runPromise(Effect.flip(Effect.scoped(Client.make(NodeHttp.transport({ url })))))
  server.close()
  const loaded = process.moduleLoadList.map((entry) => entry.split(" ").at(-1))
  console.log(JSON.stringify([error.reason.status, loaded.includes("_http_client"), loaded.some((name) => name.includes("undici"))]))
`

describe("start-up", () => {
  it("NodeHttp: a request loads node:http but not Node's fetch", () => {
    const flags = ["--conditions=@skein/source", "--input-type=module", "--eval", program]
    const [status, client, fetch] = JSON.parse(execFileSync(process.execPath, flags, { encoding: "utf8" }))
    assert.deepStrictEqual({ status, client, fetch }, { status: 404, client: true, fetch: false })
  })
})
