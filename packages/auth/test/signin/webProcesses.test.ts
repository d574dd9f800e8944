/** A web application whose requests are handled by different processes. */
import { assert, describe, it } from "@effect/vitest"
import * as DevServer from "@skein/auth/DevServer"
import * as TestUser from "@skein/auth/TestUser"
import * as Effect from "effect/Effect"
import { execFile } from "node:child_process"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { join } from "node:path"
import { promisify } from "node:util"
import { directory } from "./kit.ts"
import { redirectUri, type WebRequest } from "./webProcess.ts"

/** Handles a request in a new process. */
const handle = (request: WebRequest) =>
  Effect.promise(async (): Promise<Record<string, unknown>> => {
    const args = ["--conditions=@skein/source", join(import.meta.dirname, "webProcess.ts"), JSON.stringify(request)]
    const { stdout } = await promisify(execFile)(process.execPath, args)
    return JSON.parse(stdout)
  })

/** A server that refuses every request, and names its authorization server. */
const refusingServer = (issuer: string) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.promise(() =>
        new Promise<ReturnType<typeof createServer>>((resolve) => {
          const server = createServer((request, response) => {
            if (!request.url!.startsWith("/.well-known/oauth-protected-resource")) return response.writeHead(401).end()
            const resource = `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`
            const metadata = { resource, authorization_servers: [issuer], scopes_supported: ["tea:read"] }
            return response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(metadata))
          }).listen(0, "127.0.0.1", () => resolve(server))
        })
      ),
      (server) =>
        Effect.sync(() => {
          server.closeAllConnections()
          server.close()
        })
    ),
    (server) => `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`
  )

describe("WebSignIn", () => {
  it.live(
    "is begun in one process and finished in another, once, by the account that began it alone",
    () =>
      Effect.gen(function*() {
        const { counts, issuer } = yield* DevServer.make({ scopes: ["tea:read"] })
        const common = { folder: yield* directory, url: yield* refusingServer(issuer) }
        const ada = { ...common, account: "ada" }
        const { redirect } = yield* handle({ ...ada, want: "signIn" })
        const page = new URL(redirect as string)
        assert.strictEqual(page.origin, issuer)
        assert.strictEqual(page.searchParams.get("redirect_uri"), redirectUri)
        assert.deepStrictEqual(yield* handle({ ...ada, want: "state" }), { scopes: null })

        const answer = (yield* TestUser.make({ name: "ada" }).signIn(page)).toString()
        // Login CSRF: the browser of another person brings the answer, and so the session of another account.
        for (const account of ["mallory", ""]) {
          const other = yield* handle({ ...common, account, want: { answer } })
          assert.strictEqual(other["reason"], "InvalidAuthorizationResponse")
          assert.deepStrictEqual(yield* handle({ ...common, account, want: "state" }), { scopes: null })
        }
        assert.deepStrictEqual(yield* handle({ ...ada, want: { answer } }), { finished: common.url })
        assert.deepStrictEqual(yield* handle({ ...ada, want: "state" }), { scopes: ["tea:read"] })
        const again = yield* handle({ ...ada, want: { answer } })
        assert.strictEqual(again["reason"], "InvalidAuthorizationResponse")
        assert.notInclude(String(again["message"]), new URLSearchParams(answer).get("code")!)
        assert.deepInclude(yield* counts, { registrations: 1, authorizations: 1 })
      }),
    60_000
  )

  it.live("finishes nothing with an answer of nobody's sign-in, or a changed state", () =>
    Effect.gen(function*() {
      const { issuer } = yield* DevServer.make({ scopes: ["tea:read"] })
      const ada = { account: "ada", folder: yield* directory, url: yield* refusingServer(issuer) }
      const { redirect } = yield* handle({ ...ada, want: "signIn" })
      const answer = yield* TestUser.make({ name: "ada" }).signIn(redirect as string)
      const code = answer.get("code")!
      for (const bad of ["", `code=${code}`, `code=${code}&state=planted`, "error=access_denied&state=planted"]) {
        const { message, reason } = yield* handle({ ...ada, want: { answer: bad } })
        assert.strictEqual(reason, "InvalidAuthorizationResponse")
        assert.notInclude(String(message), "planted")
      }
      // The sign-in itself is not over.
      assert.deepStrictEqual(yield* handle({ ...ada, want: { answer: answer.toString() } }), { finished: ada.url })
    }), 60_000)
})
