/** The modules of Node that clients over HTTP load. */
import { assert, describe, it } from "@effect/vitest"
import { execFileSync } from "node:child_process"

/** Runs a program that makes `failing`, a promise with the status that refuses a client, and returns what it has loaded. */
const run = (program: string) => {
  const script = `
    const server = process.getBuiltinModule("node:http").createServer((req, res) => res.writeHead(404).end()).listen(0)
    const url = "http://127.0.0.1:" + server.address().port
    ${program}
    const error = await failing
    server.close()
    const loaded = process.moduleLoadList.map((entry) => entry.split(" ").at(-1))
    const has = (part) => loaded.some((name) => name.includes(part))
    console.log(JSON.stringify({ status: error.reason.status, client: has("_http_client"), fetch: has("undici") }))
  `
  const flags = ["--conditions=@skein/source", "--input-type=module", "--eval", script]
  return JSON.parse(execFileSync(process.execPath, flags, { encoding: "utf8" }))
}

describe("start-up", () => {
  it("NodeHttp: a request loads node:http but not Node's fetch", () => {
    const loaded = run(`
      const [Client, NodeHttp, Effect] = await Promise.all(
        ["@skein/client/Client", "@skein/client/NodeHttp", "effect/Effect"].map((name) => import(name))
      )
      const failing = Effect.runPromise(Effect.flip(Effect.scoped(Client.make(NodeHttp.transport({ url })))))
    `)
    assert.deepStrictEqual(loaded, { status: 404, client: true, fetch: false })
  })

  it("AsyncClient: a URL loads node:http but not Node's fetch", () => {
    const loaded = run(`
      const { AsyncClient } = await import("@skein/client/AsyncClient")
      const failing = AsyncClient.connect(url).catch((error) => error)
    `)
    assert.deepStrictEqual(loaded, { status: 404, client: true, fetch: false })
  })

  it("AsyncClient: a URL with fetch calls it", () => {
    const loaded = run(`
      const { AsyncClient } = await import("@skein/client/AsyncClient")
      const fetch = async () => new Response(undefined, { status: 410 })
      const failing = AsyncClient.connect({ url, fetch }).catch((error) => error)
    `)
    assert.deepStrictEqual(loaded, { status: 410, client: true, fetch: true })
  })
})
