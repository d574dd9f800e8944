/** The advice of a command after a failure. */
import { assert, describe, it } from "@effect/vitest"
import * as McpServer from "@skein/server/McpServer"
import * as NodeHttp from "@skein/server/NodeHttp"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import { listen, skein } from "./serverKit.ts"

const Server = McpServer.layer(
  { name: "scales", version: "1.0.0" },
  Tool.layer(Tool.make("fail"), () => Effect.die(new Error("secret")))
)

/** Serves it, and returns the URL. */
const serving = (options?: NodeHttp.Options) =>
  Effect.gen(function*() {
    const mounted = yield* Effect.acquireRelease(
      Effect.promise(() => NodeHttp.mount(Server, options)),
      (mounted) => Effect.promise(() => mounted.close())
    )
    return yield* listen((request, response) => void mounted.handler(request, response))
  })

/** Refuses each request with 403 and these headers. */
const refusing = (headers: Readonly<Record<string, string>>) =>
  listen((_, response) => {
    response.writeHead(403, { "content-type": "application/json", ...headers })
    response.end(JSON.stringify({ jsonrpc: "2.0", id: null, error: { code: -32600, message: "Forbidden" } }))
  })

describe("the advice of a command", () => {
  it.live("has the reference of an unexpected failure", () =>
    Effect.gen(function*() {
      const { code, err } = yield* skein("call", yield* serving(), "fail")
      assert.strictEqual(code, 1)
      assert.match(
        err.join("\n"),
        /The tool fail failed unexpectedly\. The log of the server has the cause, with the reference [\da-f-]{36}$/
      )
    }))

  it.live("names the option for a refused Host, and no sign-in", () =>
    Effect.gen(function*() {
      const { code, err } = yield* skein("call", yield* serving({ allowedHosts: ["mcp.example.com"] }))
      assert.deepStrictEqual([code, err], [3, [
        "skein: The server answered with status 403: Forbidden: the Host of this request is not among the allowedHosts " +
        "of the server. Add its name to the allowedHosts of the server: SKEIN_ALLOWED_HOSTS=127.0.0.1"
      ]])
    }))

  it.live("is a sign-in after a 403 with a challenge only", () =>
    Effect.gen(function*() {
      const plain = yield* skein("call", yield* refusing({}))
      assert.deepStrictEqual([plain.code, plain.err], [3, ["skein: The server answered with status 403: Forbidden"]])
      const url = yield* refusing({ "www-authenticate": "Bearer error=\"insufficient_scope\"" })
      const challenged = yield* skein("call", url)
      assert.deepStrictEqual(challenged.err, [
        `skein: The server answered with status 403: Forbidden. Sign in with: skein login ${url}`
      ])
    }))

  it.live("is the path /mcp for another URL of a server", () =>
    Effect.gen(function*() {
      const url = yield* serving()
      for (const revision of ["2025-06-18", "2026-07-28"]) {
        const { code, err } = yield* skein("call", "--revision", revision, new URL("/", url).href)
        assert.strictEqual(code, 3)
        assert.match(err.join("\n"), /Not Found: there is no such endpoint here; did you mean [^ ]*\?$/)
        assert.isTrue(err.join("\n").endsWith(`; did you mean ${url}?`))
      }
      const framework = yield* listen((_, response) => {
        response.writeHead(404, { "content-type": "text/html" })
        response.end("Cannot POST /")
      })
      const { err } = yield* skein("call", new URL("/", framework).href)
      assert.deepStrictEqual(err, [
        `skein: The server answered with status 404: Cannot POST /; did you mean ${new URL("/mcp", framework).href}?`
      ])
    }))
})
