/**
 * Skein's `OAuth` at published servers with authorization servers of their own, and published clients and old versions of
 * the official SDK with their own OAuth code at Skein's servers. `npm run published` installs them.
 */
import { describe, expect, it, vi } from "@effect/vitest"
import * as DevServer from "@skein/auth/DevServer"
import * as Grant from "@skein/auth/Grant"
import * as OAuth from "@skein/auth/OAuth"
import * as TestUser from "@skein/auth/TestUser"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import { spawn } from "node:child_process"
import { fileURLToPath } from "node:url"
import * as Sdks from "../authSdkClients.ts"
import * as Servers from "../authServers.ts"
import { connect, services, withClockAhead } from "../authSkeinClient.ts"
import { load } from "../published/clients/library.ts"
import { emptyHome, missingOf, program } from "../published/installation.ts"
import { freePort } from "../../scripts/freePort.ts"
import { startRemote } from "../published/remote.ts"

const missing = missingOf(["@cloudflare/workers-oauth-provider", "fastmcp", "@modelcontextprotocol/sdk"])

/** Starts a server of `authServer.ts`, and returns its endpoint. */
const start = (
  library: string,
  upstream: (port: number) => Effect.Effect<string, DevServer.DevServerError, Scope.Scope>
) =>
  Effect.gen(function*() {
    const port = yield* Effect.promise(freePort)
    const issuer = yield* upstream(port)
    const main = fileURLToPath(new URL("../published/authServer.ts", import.meta.url))
    const args = ["--conditions=@skein/source", main, library, String(port), issuer]
    const command = { command: process.execPath, args, cwd: emptyHome(), env: { PATH: process.env["PATH"] } }
    yield* Effect.acquireRelease(
      Effect.promise(() => startRemote(command as never, port)),
      ({ stop }) => Effect.promise(stop)
    )
    return `http://127.0.0.1:${port}/mcp`
  })

const grant = Grant.authorizationCode({ clientName: "Tea House" })

describe.skipIf(missing !== undefined)(missing ?? "published authorization servers", () => {
  it.live("signs in, steps up, refreshes and signs out at @cloudflare/workers-oauth-provider", () => {
    let ahead = 0
    return Effect.gen(function*() {
      const resource = yield* start("@cloudflare/workers-oauth-provider", () => Effect.succeed(""))
      const oauth = yield* OAuth.make({ grant })
      const call = yield* connect(resource, oauth)
      expect(yield* call("whoami")).toBe("ada")
      const state = Effect.map(oauth.state(resource), Option.getOrThrow)
      expect((yield* state).scopes).toEqual(["mcp:read"])
      expect(yield* call("brew")).toBe("tea")
      expect((yield* state).scopes).toEqual(expect.arrayContaining(["mcp:read", "mcp:write"]))
      const { clientId, expiresAt, isRenewable } = yield* state
      expect(isRenewable).toBe(true)
      ahead = 60 * 60_000 - 10_000
      expect(yield* call("brew")).toBe("tea")
      expect((yield* state).clientId).toBe(clientId)
      expect((yield* state).expiresAt).toBeGreaterThan(expiresAt!)
      yield* oauth.signOut(resource)
      expect(Option.isNone(yield* oauth.state(resource))).toBe(true)
      expect(yield* call("whoami")).toBe("ada")
    }).pipe(withClockAhead(() => ahead), Effect.provide(services))
  }, 60_000)

  it.live("signs in at the authorization proxy of fastmcp, with the person's consent, and refreshes", () => {
    let ahead = 0
    return Effect.gen(function*() {
      const resource = yield* start("fastmcp", (port) =>
        Effect.map(
          DevServer.make({
            accessTokenFormat: "opaque",
            clients: [{
              clientId: "published",
              clientSecret: "a secret of the published server",
              redirectUris: [`http://127.0.0.1:${port}/oauth/callback`]
            }]
          }),
          ({ issuer }) => issuer
        ))
      const oauth = yield* OAuth.make({ grant })
      const call = yield* connect(resource, oauth)
      expect(yield* call("whoami")).toBe("ada")
      const state = Effect.map(oauth.state(resource), Option.getOrThrow)
      const { expiresAt, isRenewable } = yield* state
      expect(isRenewable).toBe(true)
      ahead = expiresAt! - Date.now() - 10_000
      expect(yield* call("whoami")).toBe("ada")
      expect((yield* state).expiresAt).toBeGreaterThan(expiresAt!)
    }).pipe(withClockAhead(() => ahead), Effect.provide(services))
  }, 60_000)
})

const sdks = {
  "sdk-1.8": "2024-11-05",
  "sdk-1.12": "2025-03-26",
  "sdk-1.20": "2025-06-18",
  "@modelcontextprotocol/sdk": "2025-11-25"
}
const missingSdks = missingOf(Object.keys(sdks))

/** A version of SDK v1 that is installed as `name`. */
const sdkOf = async (name: string): Promise<Sdks.Sdk> => {
  const [{ Client }, { UnauthorizedError }, { StreamableHTTPClientTransport, SSEClientTransport }] = await Promise.all([
    load(`${name}/client/index.js`),
    load(`${name}/client/auth.js`),
    name === "sdk-1.8" ? load(`${name}/client/sse.js`) : load(`${name}/client/streamableHttp.js`)
  ])
  const Transport = StreamableHTTPClientTransport ?? SSEClientTransport
  return {
    name,
    revisions: [],
    isUnauthorized: (error) => error instanceof UnauthorizedError,
    open: (url, authProvider) => {
      const transport = new Transport(new URL(url), { authProvider })
      const client = new Client({ name: "auth", version: "1.0.0" }, { capabilities: {} })
      return {
        errors: [],
        revision: () => transport.protocolVersion,
        connect: () => client.connect(transport),
        finish: (answer) => transport.finishAuth(answer.get("code")),
        call: async (tool) => (await client.callTool({ name: tool, arguments: {} })).content[0].text,
        close: () => client.close()
      }
    }
  }
}

describe.skipIf(missingSdks !== undefined)(missingSdks ?? "old versions of SDK v1", () => {
  for (const name of Object.keys(sdks)) {
    const protectedServer = Servers.start({ knowsOldClients: true })
    for (const [where, start] of [["protected", protectedServer], ["proxied", Servers.startProxied()]] as const) {
      it.live(`${name} signs in at a ${where} server, and refreshes`, () =>
        Effect.gen(function*() {
          const { dev, resource, sse } = yield* start
          const sdk = yield* Effect.promise(() => sdkOf(name))
          const [person, provider] = [TestUser.make(), new Sdks.MemoryProvider()]
          const url = name === "sdk-1.8" ? sse : resource
          const connection = yield* Effect.acquireRelease(
            Effect.promise(() => Sdks.signIn(sdk, { url, provider, person })),
            (connection) => Effect.promise(connection.close)
          )
          const call = Effect.promise(() => connection.call("whoami"))
          expect(yield* call).toContain(`${dev.issuer} ada`)
          const { access_token: before } = provider.stored!
          provider.stored = { ...provider.stored!, access_token: `${before.slice(0, -4)}AAAA` }
          expect(yield* call).toContain(`${dev.issuer} ada`)
          expect(provider.stored.access_token).not.toBe(before)
          expect(provider.redirects).toHaveLength(1)
          expect(yield* dev.counts).toMatchObject({ authorizations: 1, refreshReuses: 0 })
        }))
    }
  }
})

const missingClients = missingOf(["@ai-sdk/mcp", "mcporter"])

describe.skipIf(missingClients !== undefined)(missingClients ?? "published clients", () => {
  for (const [where, start] of [["protected", Servers.start()], ["proxied", Servers.startProxied()]] as const) {
    it.live(`@ai-sdk/mcp signs in at a ${where} server, and refreshes`, () =>
      Effect.gen(function*() {
        const { dev, resource } = yield* start
        const { auth, createMCPClient } = yield* Effect.promise(() => load("@ai-sdk/mcp"))
        const [person, provider] = [TestUser.make(), new Sdks.MemoryProvider()]
        yield* Effect.promise(() => auth(provider, { serverUrl: resource }))
        const answer = yield* person.signIn(provider.redirects[0]!)
        yield* Effect.promise(() =>
          auth(provider, {
            serverUrl: resource,
            authorizationCode: answer.get("code"),
            callbackState: answer.get("state"),
            callbackIssuer: answer.get("iss")
          })
        )
        const call = Effect.promise(async () => {
          const client = await createMCPClient({ transport: { type: "http", url: resource, authProvider: provider } })
          const tools = await client.tools()
          const result = await tools["whoami"].execute({}, { toolCallId: "1", messages: [] })
          await client.close()
          return result.content[0].text as string
        })
        expect(yield* call).toContain(`${dev.issuer} ada`)
        const { access_token: before } = provider.stored!
        provider.stored = { ...provider.stored!, access_token: `${before.slice(0, -4)}AAAA` }
        expect(yield* call).toContain(`${dev.issuer} ada`)
        expect(yield* dev.counts).toMatchObject({ authorizations: 1, refreshReuses: 0 })
      }))

    it.live(
      `mcporter signs in at a ${where} server, and calls a tool in another process`,
      () =>
        Effect.gen(function*() {
          const { dev, resource } = yield* start
          const home = emptyHome()
          const run = (...args: ReadonlyArray<string>) =>
            Effect.acquireRelease(
              Effect.sync(() => {
                const child = spawn(process.execPath, [program("mcporter"), ...args], {
                  cwd: home,
                  env: { PATH: process.env["PATH"], HOME: home },
                  stdio: ["ignore", "pipe", "pipe"]
                })
                let output = ""
                for (const stream of [child.stdout, child.stderr]) {
                  stream.setEncoding("utf8").on("data", (text: string) => void (output += text))
                }
                return { child, output: () => output, ended: new Promise((resolve) => child.once("close", resolve)) }
              }),
              ({ child }) => Effect.sync(() => child.kill("SIGKILL"))
            )
          const signIn = yield* run("auth", resource, "--allow-http", "--no-browser")
          const url = yield* Effect.promise(() =>
            vi.waitFor(() => {
              const found = /https?:\/\/127\.0\.0\.1:\S+client_id=\S+/.exec(signIn.output())?.[0]
              if (found === undefined) throw new Error(signIn.output())
              return found
            }, { interval: 50, timeout: 60_000 })
          )
          yield* TestUser.make().visit(url)
          yield* Effect.promise(() => signIn.ended)
          const called = yield* run("call", `${resource}.whoami`, "--allow-http")
          yield* Effect.promise(() => called.ended)
          expect(called.output()).toContain(`${dev.issuer} ada`)
          expect(yield* dev.counts).toMatchObject({ authorizations: 1, refreshReuses: 0 })
        }),
      120_000
    )
  }
})
