/**
 * The client of SDK v1 with its own OAuth code, at a protected server of which it sees no resource metadata, as clients of
 * 2025-03-26: it finds the authorization server by the metadata at the origin (`authorizationServerMetadata`).
 */
import { expect, it } from "@effect/vitest"
import type { OAuthClientProvider } from "@modelcontextprotocol/sdk/client/auth.js"
import { Client } from "@modelcontextprotocol/sdk/client/index.js"
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js"
import type { OAuthClientInformationMixed, OAuthTokens } from "@modelcontextprotocol/sdk/shared/auth.js"
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js"
import * as DevServer from "@skein/auth/DevServer"
import * as Protect from "@skein/auth/Protect"
import * as TestUser from "@skein/auth/TestUser"
import * as TokenVerifier from "@skein/auth/TokenVerifier"
import * as McpServer from "@skein/server/McpServer"
import * as NodeHttp from "@skein/server/NodeHttp"
import * as Principal from "@skein/server/Principal"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import { freePort } from "../../scripts/freePort.ts"

const redirectUrl = "http://127.0.0.1:41995/callback"

const whoami = Tool.layer(
  Tool.make("whoami"),
  () => Effect.map(Principal.current, (found) => Option.getOrThrow(found).id)
)

/** Stores the values of the SDK, and the URL that it would open in a browser. */
class Provider implements OAuthClientProvider {
  readonly redirectUrl = redirectUrl
  readonly clientMetadata = { redirect_uris: [redirectUrl], client_name: "SDK v1", token_endpoint_auth_method: "none" }
  client: OAuthClientInformationMixed | undefined
  stored: OAuthTokens | undefined
  verifier = ""
  opened: URL | undefined
  clientInformation = () => this.client
  saveClientInformation = (client: OAuthClientInformationMixed) => void (this.client = client)
  tokens = () => this.stored
  saveTokens = (tokens: OAuthTokens) => void (this.stored = tokens)
  redirectToAuthorization = (url: URL) => void (this.opened = url)
  saveCodeVerifier = (verifier: string) => void (this.verifier = verifier)
  codeVerifier = () => this.verifier
}

it.live("2025-03-26 · the client of SDK v1 signs in without metadata of the resource", () =>
  Effect.scoped(Effect.gen(function*() {
    const port = yield* Effect.promise(freePort)
    const resource = `http://127.0.0.1:${port}/mcp`
    const dev = yield* DevServer.make({ resources: [resource] })
    const protection = Protect.make({
      resource,
      verify: TokenVerifier.jwt({ issuer: dev.issuer }),
      authorizationServerMetadata: true
    })
    const server = McpServer.layer({ name: "tea", version: "1.0.0" }, whoami)
    yield* Effect.orDie(Layer.build(Layer.provide(NodeHttp.layer({ port, protection }), server)))
    const requested: Array<string> = []
    const withoutResourceMetadata = async (input: string | URL, init?: RequestInit): Promise<Response> => {
      const url = String(input)
      requested.push(url)
      if (url.includes("oauth-protected-resource")) return new Response("", { status: 404 })
      const response = await fetch(input, init)
      const headers = new Headers(response.headers)
      headers.delete("www-authenticate")
      return new Response(response.body, { status: response.status, headers })
    }
    const provider = new Provider()
    const connect = () => {
      const transport = new StreamableHTTPClientTransport(new URL(resource), {
        authProvider: provider,
        fetch: withoutResourceMetadata
      })
      const client = new Client({ name: "sdk-v1", version: "1.0.0" })
      return { client, transport, connected: client.connect(transport as Transport) }
    }
    const first = connect()
    const refused = yield* Effect.promise(() => first.connected.then(() => "connected", (error: Error) => error.name))
    expect([refused, provider.opened?.origin]).toEqual(["Error", new URL(dev.issuer).origin])
    expect(provider.opened?.searchParams.get("resource")).toBe(null)
    expect(requested).toContain(`http://127.0.0.1:${port}/.well-known/oauth-authorization-server`)
    const answer = yield* TestUser.make({ name: "ada" }).signIn(provider.opened!)
    yield* Effect.promise(() => first.transport.finishAuth(answer.get("code")!))
    const { client, connected } = connect()
    yield* Effect.promise(() => connected)
    yield* Effect.addFinalizer(() => Effect.promise(() => client.close()))
    const { content } = yield* Effect.promise(() => client.callTool({ name: "whoami" }))
    expect(content).toEqual([{ type: "text", text: `${dev.issuer} ada` }])
  })))
