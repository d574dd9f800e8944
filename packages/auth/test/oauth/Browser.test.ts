/** The client in Chromium, with tokens in `BrowserTokenStore`. Needs Chromium: see `packages/client/test/browser`. */
import { assert, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { bundle } from "../../../client/test/browser/bundle.ts"
import * as Chromium from "../../../client/test/browser/chromium.ts"
import { type Answer, type Arrived, type Servers, start } from "./scriptedServers.ts"

const chromium = Chromium.find()

const cors = {
  "access-control-allow-origin": "*",
  "access-control-allow-headers": "authorization, content-type, mcp-protocol-version",
  "access-control-expose-headers": "www-authenticate"
}

/** Answers the messages of a client, after its token was accepted. */
const mcp = (body: string): Answer => {
  const { id, method } = JSON.parse(body)
  if (id === undefined) return { status: 202 }
  const result = method === "initialize"
    ? { protocolVersion: "2025-06-18", capabilities: { tools: {} }, serverInfo: { name: "tea", version: "1" } }
    : { content: [{ type: "text", text: "tea" }] }
  return { body: { jsonrpc: "2.0", id, result } }
}

/** Lets pages of all origins use the servers, and answers messages and sign-ins for a page. */
const openToPages = (servers: Servers): void => {
  for (const [path, ordinary] of Object.entries(servers.ordinary)) {
    const handler = async (request: Arrived): Promise<Answer> => {
      if (request.method === "OPTIONS") return { status: 204 }
      const answer = await ordinary(request)
      if (path === "/as/authorize") return { body: { location: answer.headers!["location"] } }
      if (path !== "/mcp" || answer.status === 401) return answer
      return request.method === "POST" ? mcp(request.body) : { status: 405 }
    }
    servers.routes.set(path, async (request) => {
      const answer = await handler(request)
      return { ...answer, headers: { ...answer.headers, ...cors } }
    })
  }
}

const skipped = chromium === undefined && (process.env["CI"] ?? "") === ""

it.live.skipIf(skipped)(
  "signs in, keeps the tokens for the next page, and signs out in Chromium",
  () =>
    Effect.gen(function*() {
      if (chromium === undefined) assert.fail("there is no Chromium in the PATH")
      const servers = yield* start
      openToPages(servers)
      const { code, ofNode } = yield* Effect.promise(() => bundle("packages/auth/test/oauth/browserProgram.ts"))
      assert.deepEqual(ofNode, [])
      const url = JSON.stringify(servers.url.href)
      const script = `return [await program.call(${url}), await program.call(${url}, true), await program.call(${url})]`
      const seen = yield* Chromium.browse(chromium, code, script)
      const common = { content: [{ type: "text", text: "tea" }], issuer: servers.issuer }
      assert.deepEqual(seen, [
        { ...common, asked: 1, isSignedIn: true },
        { ...common, asked: 0, isSignedIn: false },
        { ...common, asked: 1, isSignedIn: true }
      ])
      const posts = servers.requests.filter(({ method, path }) => method === "POST" && path === "/as/revoke")
      assert.strictEqual(posts.length, 2)
      const { origin } = servers.requests.find(({ path }) => path === "/mcp")!.headers
      assert.notStrictEqual(origin, servers.origin)
    })
)
