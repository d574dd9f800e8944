/** The programs of the pages in `providers`: what clients find at a server with each preset. */
import * as ProxyStore from "@skein/auth/ProxyStore"
import * as SignIn from "@skein/auth/SignIn"
import * as TokenStore from "@skein/auth/TokenStore"
import * as McpServer from "@skein/server/McpServer"
import * as NodeHttp from "@skein/server/NodeHttp"
import { afterAll, describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import * as Programs from "../programs/providers.ts"

process.env["GITHUB_CLIENT_SECRET"] = process.env["GOOGLE_CLIENT_SECRET"] = "the secret of the app"
process.env["PROXY_KEY"] = "a key of the proxy, for this test only"
afterAll(() => {
  for (const name of ["GITHUB_CLIENT_SECRET", "GOOGLE_CLIENT_SECRET", "PROXY_KEY"]) delete process.env[name]
})

/** The metadata of a server with a protection. */
const metadataOf = async (protection: NonNullable<NodeHttp.Options["protection"]>) => {
  const mounted = await NodeHttp.mount(McpServer.layer({ name: "tea", version: "1" }), { protection })
  const server = createServer(mounted.handler)
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve))
  try {
    const { port } = server.address() as AddressInfo
    return await (await fetch(`http://127.0.0.1:${port}/.well-known/oauth-protected-resource/mcp`)).json()
  } finally {
    await mounted.close()
    server.close()
    server.closeAllConnections()
  }
}

const issuers = {
  entra: "https://login.microsoftonline.com/9122040d-6c67-4c5b-b112-36a304b66dad/v2.0",
  okta: "https://acme.okta.com/oauth2/aus1tea",
  auth0: "https://acme.eu.auth0.com/",
  cognito: "https://cognito-idp.eu-central-1.amazonaws.com/eu-central-1_AbCdEf123",
  keycloak: "https://login.example/realms/tea",
  workos: "https://acme.authkit.app"
} as const

describe("programs/providers.ts", () => {
  for (const name of ["entra", "okta", "auth0", "cognito", "keycloak", "workos"] as const) {
    it(`sends clients to the issuer of ${name}`, async () => {
      const metadata = await metadataOf(Programs[`${name}Protection`])
      expect(metadata).toMatchObject({ resource: Programs.resource, authorization_servers: [issuers[name]] })
    })
  }

  it("requires the scope of Entra with the URI of its application", async () => {
    expect(await metadataOf(Programs.entraProtection)).toMatchObject({
      scopes_supported: ["api://0c0c2b0d-3c0e-4f31-9a53-0b1b7a6f2d11/tea.read"]
    })
  })

  for (const name of ["github", "google"] as const) {
    it(`sends clients to a proxy in front of ${name}`, async () => {
      const proxy = await Effect.runPromise(
        Effect.provideService(Programs[name], ProxyStore.ProxyStore, ProxyStore.makeMemory())
      )
      expect(await metadataOf(proxy.protection)).toMatchObject({ authorization_servers: ["https://tea.example"] })
    })
  }

  it("makes the client of Entra", async () => {
    const signIn = Layer.succeed(SignIn.SignIn, { open: () => Effect.die("nobody is asked") })
    const client = Effect.provide(Programs.entraClient, [signIn, TokenStore.layerMemory, Logger.layer([])])
    expect(await Effect.runPromise(client)).toHaveProperty("signIn")
  })
})
