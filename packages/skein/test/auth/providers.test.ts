/** Presets of identity providers. */
import { describe, expect, it } from "@effect/vitest"
import { Grant, Providers, TokenVerifier } from "skein/auth"
import { start } from "./kit.ts"

describe("Providers", () => {
  it("have the parts of a server whose tokens are JWTs", () => {
    const tenant = "11111111-1111-1111-1111-111111111111"
    const entra = Providers.entra({ tenant, clientId: "tea", scopes: ["tea.read"] })
    expect(entra.scope("tea.read")).toBe("api://tea/tea.read")
    const providers = [
      entra,
      Providers.okta({ domain: "acme.okta.com" }),
      Providers.auth0({ domain: "acme.eu.auth0.com" }),
      Providers.cognito({ region: "eu-central-1", userPoolId: "eu-central-1_a" }),
      Providers.keycloak({ url: "https://login.example", realm: "tea" }),
      Providers.workos({ domain: "acme.authkit.app" })
    ]
    for (const { grant, issuer, jwt } of providers) {
      expect(TokenVerifier.jwt(jwt).issuers).toEqual([issuer])
      Grant.authorizationCode({ clientName: "Tea", ...grant, client: { clientId: "c", issuer } })
    }
  })

  it("verify opaque tokens by a request to the provider", async () => {
    const requests: Array<string> = []
    const github: typeof fetch = async (url, init) => {
      requests.push(`${String(url)} ${new Headers(init?.headers).get("authorization")}`)
      const { access_token } = JSON.parse(String(init?.body))
      return access_token === "gho_ada"
        ? Response.json({ app: { client_id: "tea" }, user: { id: 1 }, scopes: ["repo"], expires_at: null })
        : Response.json({}, { status: 404 })
    }
    const { oauth, verifier } = Providers.github()
    expect(oauth.assumePkce).toEqual(["https://github.com/login/oauth"])
    const own = verifier({ clientId: "tea", clientSecret: "s", fetch: github })
    await using started = await start({ verify: () => TokenVerifier.make(own) })
    const call = (token: string) =>
      fetch(started.url, {
        method: "POST",
        headers: {
          authorization: `Bearer ${token}`,
          "content-type": "application/json",
          accept: "application/json, text/event-stream"
        },
        body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "ping" })
      })
    expect((await call("gho_eve")).status).toBe(401)
    expect((await call("gho_ada")).status).not.toBe(401)
    expect(requests[0]).toBe(`https://api.github.com/applications/tea/token Basic ${btoa("tea:s")}`)
    expect(Providers.google().verifier({ clientIds: ["tea"] }).issuer).toBe("https://accounts.google.com")
  })
})
