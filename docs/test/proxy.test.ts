/** The programs of `proxy.md`, with `DevServer` as the upstream and its accounts. */
import { afterAll, beforeAll, describe, expect, it } from "@effect/vitest"
import * as DevServer from "@skein/auth/DevServer"
import * as Grant from "@skein/auth/Grant"
import * as OAuth from "@skein/auth/OAuth"
import * as SignIn from "@skein/auth/SignIn"
import * as TestUser from "@skein/auth/TestUser"
import * as TokenStore from "@skein/auth/TokenStore"
import * as Client from "@skein/client/Client"
import * as ClientHttp from "@skein/client/NodeHttp"
import * as RawServer from "@skein/testing/RawServer"
import * as ConfigProvider from "effect/ConfigProvider"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import { fork } from "node:child_process"
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { freePort } from "../../scripts/freePort.ts"

const key = "a key of the proxy for this test only"

// The programs write their databases into the current folder.
const before = process.cwd()
let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "skein-docs-proxy-"))
  process.chdir(folder)
})
afterAll(() => {
  process.chdir(before)
  delete process.env["API_URL"]
  rmSync(folder, { recursive: true, force: true })
})

/** The API of the provider: it accepts the tokens of the development server. */
const api = (issuer: () => string) =>
  RawServer.http((request, response) => {
    const { authorization = "" } = request.headers
    void fetch(`${issuer()}/me`, { headers: { authorization } }).then(async (reply) => {
      const user = reply.ok ? await reply.json() as { readonly sub: string } : { sub: "" }
      const body = JSON.stringify({ login: user.sub, public_repos: 3 })
      return response.writeHead(reply.status, { "content-type": "application/json" }).end(body)
    })
  })

/** Answers the pages with a browser of forms. */
const signInAs = (name: string) =>
  Layer.succeed(SignIn.SignIn, {
    open: () =>
      Effect.succeed({
        redirectUri: "http://127.0.0.1:4999/callback",
        authorize: (url: URL) => Effect.orDie(TestUser.make({ name }).signIn(url))
      })
  })

describe("programs/proxy.ts", () => {
  it.live("signs a person in through the proxy, and calls the API as that person", () =>
    Effect.gen(function*() {
      const port = yield* Effect.promise(freePort)
      const origin = `http://localhost:${port}`
      const upstream = yield* DevServer.make({
        clients: [{
          clientId: "repositories",
          clientSecret: "the secret of the app",
          tokenEndpointAuthMethod: "client_secret_post",
          redirectUris: [`${origin}/upstream/callback`]
        }]
      })
      process.env["API_URL"] = (yield* api(() => upstream.issuer)).url.origin
      const { OneInstance, serve } = yield* Effect.promise(() => import("../programs/proxy.ts"))
      const env = {
        PROXY_KEYS: `${key}, the key before it that is as long as it`,
        RESOURCE: `${origin}/mcp`,
        PORT: `${port}`
      }
      const accounts = Effect.succeed({
        name: "Accounts",
        issuer: upstream.issuer,
        clientId: "repositories",
        clientSecret: Redacted.make("the secret of the app"),
        scope: "openid offline_access"
      })
      yield* Layer.build(Layer.provide(serve(accounts), OneInstance)).pipe(
        Effect.provide(ConfigProvider.layer(ConfigProvider.fromEnv({ env })))
      )
      const call = (name: string, tool: string) =>
        Effect.gen(function*() {
          const oauth = yield* OAuth.make({ grant: Grant.authorizationCode({ clientName: "Tea House" }) })
          const client = yield* Client.make(ClientHttp.transport({ url: `${origin}/mcp`, credentials: oauth }))
          const { content } = yield* client.callTool(tool, {})
          return (content as ReadonlyArray<{ readonly text: string }>)[0]!.text
        }).pipe(Effect.scoped, Effect.provide([signInAs(name), TokenStore.layerMemory]))
      expect(yield* call("ada", "whoami")).toBe("You are ada")
      expect(yield* call("grace", "whoami")).toBe("You are grace")
      const stored = ["proxy.db", "proxy.db-wal"].map((name) => existsSync(name) ? readFileSync(name, "latin1") : "")
      for (const text of [" ada", " grace", "Tea House"]) expect(stored.join("")).not.toContain(text)
    }).pipe(Effect.scoped))
})

describe("programs/proxyMain.ts", () => {
  const start = (env: Readonly<Record<string, string>>) =>
    Effect.acquireRelease(
      Effect.sync(() => {
        // Its port is a part of the redirect URI at the provider, so it cannot be any.
        const child = fork(join(import.meta.dirname, "../programs/proxyMain.ts"), {
          cwd: mkdtempSync(join(folder, "main-")),
          env: { ...process.env, ...env },
          execArgv: ["--conditions=@skein/source"],
          stdio: ["ignore", "ignore", "pipe", "ipc"]
        })
        const errors: Array<string> = []
        child.stderr!.on("data", (chunk: Buffer) => errors.push(chunk.toString()))
        return { child, errors }
      }),
      ({ child }) => Effect.sync(() => void child.kill("SIGKILL"))
    )

  it.live("publishes the metadata of the server and of its proxy, and sends people to GitHub after they agreed", () =>
    Effect.gen(function*() {
      const port = yield* Effect.promise(freePort)
      const origin = `http://localhost:${port}`
      yield* start({
        PROXY_KEYS: key,
        RESOURCE: `${origin}/mcp`,
        PORT: `${port}`,
        GITHUB_CLIENT_ID: "Iv1.tea",
        GITHUB_CLIENT_SECRET: "the secret of the app"
      })
      const json = async (path: string, init?: RequestInit): Promise<any> => {
        for (let attempt = 0;; attempt++) {
          try {
            return await (await fetch(origin + path, init)).json()
          } catch (error) {
            if (attempt === 1_200) throw error
            await new Promise((resolve) => setTimeout(resolve, 50))
          }
        }
      }
      yield* Effect.promise(async () => {
        expect(await json("/.well-known/oauth-protected-resource/mcp")).toMatchObject({
          resource: `${origin}/mcp`,
          authorization_servers: [origin],
          scopes_supported: ["profile:read"]
        })
        expect(await json("/.well-known/oauth-authorization-server")).toMatchObject({
          issuer: origin,
          client_id_metadata_document_supported: true
        })
        const { client_id } = await json("/reg", {
          method: "POST",
          headers: { "content-type": "application/json" },
          body: JSON.stringify({
            client_name: "Tea House",
            redirect_uris: ["http://127.0.0.1:4999/callback"],
            token_endpoint_auth_method: "none"
          })
        })
        const url = new URL(`${origin}/auth`)
        const parameters = {
          client_id,
          redirect_uri: "http://127.0.0.1:4999/callback",
          response_type: "code",
          code_challenge: "c".repeat(43),
          code_challenge_method: "S256"
        }
        for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value)
        const begun = await fetch(url, { redirect: "manual" })
        const cookie = begun.headers.getSetCookie().map((line) => line.split(";")[0]).join("; ")
        const consent = new URL(begun.headers.get("location")!, origin)
        const page = await (await fetch(consent, { headers: { cookie } })).text()
        expect(page).toContain("Tea House asks for access to Repositories")
        expect(page).toContain("With your account at GitHub")
        const csrf = /name="csrf" value="([^"]*)"/.exec(page)![1]!
        const agreed = await fetch(consent, {
          method: "POST",
          redirect: "manual",
          headers: { cookie, "content-type": "application/x-www-form-urlencoded" },
          body: new URLSearchParams({ csrf, answer: "allow" }).toString()
        })
        const there = new URL(agreed.headers.get("location")!)
        expect(there.origin + there.pathname).toBe("https://github.com/login/oauth/authorize")
        expect(Object.fromEntries(there.searchParams)).toMatchObject({
          client_id: "Iv1.tea",
          redirect_uri: `${origin}/upstream/callback`,
          scope: "read:user",
          code_challenge_method: "S256"
        })
      })
    }).pipe(Effect.scoped))
})
