/** Clients that sign in, with a person and without, over real HTTP. */
import { describe, expect, it } from "@effect/vitest"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import {
  customSignIn,
  Grant,
  loopback,
  OAuth,
  OAuthError,
  type OAuthOptions,
  pasteSignIn,
  type SignIn,
  SignInError,
  TestUser,
  webSignIn
} from "skein/auth"
import { errorOf, start, textOf } from "./kit.ts"

const grant = Grant.authorizationCode({ clientName: "Tea House" })

/** Runs a call as a client that signs in in this way, and returns the user that the server has seen. */
const callBy = async (signIn: SignIn): Promise<unknown> => {
  await using started = await start()
  await using oauth = await OAuth.make({ grant, signIn })
  const client = await started.connect(oauth)
  const { issuer } = started.dev
  return String(textOf(await client.callTool("whoami"))).replace(issuer, "issuer")
}

describe("a person", () => {
  it("signs in in the browser of this computer", async () => {
    const ada = await TestUser.make({ name: "ada" })
    expect(await callBy(loopback({ name: "Tea", open: async (url) => void await ada.visit(url) }))).toBe("issuer ada")
    expect(ada.visited.at(-1)).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/callback$/)
  })

  it("signs in by pasting the address of the browser", async () => {
    const grace = await TestUser.make({ name: "grace" })
    const lines: Array<string> = []
    const terminal = {
      writeLine: (line: string) => void lines.push(line),
      readLine: async () => {
        const url = /https?:\/\/\S+\/auth\S*/.exec(lines[0]!)![0]
        return `http://127.0.0.1:49817/callback?${await grace.signIn(url)}`
      }
    }
    expect(await callBy(pasteSignIn({ terminal }))).toBe("issuer grace")
  })

  it("signs in in a window of the application, which is closed after it", async () => {
    const ada = await TestUser.make()
    const states: Array<string> = []
    const signIn = customSignIn({
      open: ({ resource }) => {
        states.push(new URL(resource).pathname)
        return {
          redirectUri: "http://127.0.0.1:41998/callback",
          authorize: (url) => ada.signIn(url),
          close: () => void states.push("closed")
        }
      }
    })
    expect(await callBy(signIn)).toBe("issuer ada")
    expect(states).toEqual(["/mcp", "closed"])
  })

  it("signs in at a web application, which finishes the sign-in", async () => {
    await using started = await start()
    const ada = await TestUser.make()
    const redirectUri = "http://127.0.0.1:41997/oauth/callback"
    await using oauth = await OAuth.make({ grant, signIn: webSignIn({ redirectUri }), account: "ada" })
    const error = await errorOf(started.connect(oauth))
    const cause = error.cause
    if (!(cause instanceof OAuthError) || cause.reason._tag !== "SignInRequired") throw error
    const params = await ada.signIn(cause.reason.url)
    expect((await oauth.finish(params)).href).toBe(started.url)
    const again = await errorOf<OAuthError>(oauth.finish(params))
    expect(again.reason._tag).toBe("InvalidAuthorizationResponse")
    expect(textOf(await (await started.connect(oauth)).callTool("whoami"))).toContain("ada")
  })

  it("is reported when they do not agree, or the window fails", async () => {
    await using started = await start()
    const eve = await TestUser.make({ answer: "deny" })
    await using denied = await OAuth.make({
      grant,
      signIn: loopback({ open: async (url) => void await eve.visit(url) })
    })
    const reason = (await errorOf<OAuthError>(denied.signIn(started.url))).reason
    expect(reason).toMatchObject({ _tag: "AuthorizationDenied", error: "access_denied" })
    for (const thrown of [new SignInError({ message: "The window was closed" }), new Error("crash")]) {
      const signIn = customSignIn({ open: () => Promise.reject(thrown) })
      await using oauth = await OAuth.make({ grant, signIn })
      const error = await errorOf<OAuthError>(oauth.signIn(started.url))
      expect(error.reason._tag).toBe("SignInFailed")
      expect(error.reason.cause).toBeInstanceOf(SignInError)
    }
  })

  it("must be asked in some way", async () => {
    const options = { grant } as unknown as OAuthOptions
    expect((await errorOf(OAuth.make(options))).message).toContain("signIn: loopback()")
  })

  it("is shown in the state and the changes, until they sign out", async () => {
    await using started = await start({ dev: { scopes: ["mcp:read", "mcp:write"] } })
    const ada = await TestUser.make()
    const signIn = loopback({ open: async (url) => void await ada.visit(url) })
    const oauth = await OAuth.make({ grant, signIn, scopes: ["openid", "mcp:read"] })
    const statuses: Array<string> = []
    const iterator = oauth.changes[Symbol.asyncIterator]()
    let next = iterator.next()
    const read = async (count: number) => {
      while (statuses.length < count) {
        const { value } = await next
        statuses.push(value.status)
        next = iterator.next()
      }
    }
    expect(await oauth.state(started.url)).toBeUndefined()
    await oauth.signIn(started.url)
    await read(2)
    expect(await oauth.state(started.url)).toMatchObject({
      issuer: started.dev.issuer,
      person: { subject: "ada" },
      registration: "dynamic"
    })
    await oauth.signOut(new URL(started.url))
    await read(3)
    expect(statuses).toEqual(["signing-in", "signed-in", "signed-out"])
    expect(await oauth.state(started.url)).toBeUndefined()
    expect(started.dev.counts().revocations).toBeGreaterThan(0)
    await oauth.close()
    expect((await next).done).toBe(true)
  })
})

describe("a program", () => {
  it("signs in with a secret of a function, and reports one that is not available without its text", async () => {
    await using started = await start({ dev: { clients: [{ clientId: "job", clientSecret: "s" }] } })
    const { issuer } = started.dev
    const make = (clientSecret: () => Promise<string>, account: string) =>
      OAuth.make({ grant: Grant.clientCredentials({ clientId: "job", clientSecret, issuer }), account })
    await using oauth = await make(async () => "s", "1")
    expect(textOf(await (await started.connect(oauth)).callTool("whoami"))).toContain("job")
    await using failing = await make(() => Promise.reject(new Error("planted")), "2")
    const error = await errorOf<OAuthError>(failing.signIn(started.url))
    expect(error.reason._tag).toBe("CredentialUnavailable")
    expect(String(error)).not.toContain("planted")
  })

  it("presents an assertion of its platform", async () => {
    const { exportJWK, generateKeyPair, SignJWT } = await import("jose")
    const { privateKey, publicKey } = await generateKeyPair("ES256")
    const issuer = "https://platform.example"
    await using started = await start({
      dev: {
        clients: [{ clientId: "pod", clientSecret: "s", grantTypes: ["urn:ietf:params:oauth:grant-type:jwt-bearer"] }],
        assertionIssuers: [{ issuer, jwks: { keys: [{ ...await exportJWK(publicKey), alg: "ES256", kid: "1" }] } }]
      }
    })
    const requests: Array<Grant.AssertionRequest> = []
    await using oauth = await OAuth.make({
      grant: Grant.jwtBearer({
        clientId: "pod",
        clientSecret: "s",
        issuer: started.dev.issuer,
        assertion: async (request) => {
          requests.push(request)
          return new SignJWT({ jti: crypto.randomUUID() })
            .setProtectedHeader({ alg: "ES256", kid: "1" })
            .setIssuer(issuer).setSubject("pod-1").setAudience(request.issuer).setIssuedAt().setExpirationTime("1m")
            .sign(privateKey)
        }
      }),
      scopes: ["mcp:read"]
    })
    expect(textOf(await (await started.connect(oauth)).callTool("whoami"))).toContain("pod-1")
    expect(requests).toEqual([{ issuer: started.dev.issuer, resource: started.url, scopes: ["mcp:read"] }])
  })

  it("exchanges the ID token of a person at the identity provider", async () => {
    await using started = await start()
    const forms: Array<URLSearchParams> = []
    const provider = createServer(async (request, response) => {
      const chunks: Array<Buffer> = []
      for await (const chunk of request) chunks.push(chunk as Buffer)
      forms.push(new URLSearchParams(Buffer.concat(chunks).toString()))
      response.writeHead(400, { "content-type": "application/json" }).end("{\"error\":\"invalid_grant\"}")
    })
    await new Promise<void>((resolve) => provider.listen(0, "127.0.0.1", resolve))
    try {
      const at = `http://127.0.0.1:${(provider.address() as AddressInfo).port}`
      await using oauth = await OAuth.make({
        grant: Grant.identityAssertion({
          clientId: "agent-at-tea",
          issuer: started.dev.issuer,
          identityProvider: {
            issuer: at,
            clientId: "agent",
            tokenEndpoint: `${at}/token`,
            idToken: async () => "id-token"
          }
        })
      })
      const error = await errorOf<OAuthError>(oauth.signIn(started.url))
      expect(error.reason).toMatchObject({ _tag: "TokenRequestFailed", error: "invalid_grant", retryable: false })
      expect(forms[0]!.get("subject_token")).toBe("id-token")
    } finally {
      provider.close()
    }
  })

  it("sends its requests as the options say", async () => {
    await using started = await start({ dev: { clients: [{ clientId: "job", clientSecret: "s" }] } })
    const job = Grant.clientCredentials({ clientId: "job", clientSecret: "s", issuer: started.dev.issuer })
    const urls: Array<string> = []
    await using recorded = await OAuth.make({
      grant: job,
      outbound: {
        fetch: (url, init) => {
          urls.push(url)
          return fetch(url, init)
        }
      }
    })
    await recorded.signIn(started.url)
    expect(urls.length).toBeGreaterThan(1)
    await using guarded = await OAuth.make({ grant: job, outbound: { refusePrivateAddresses: true } })
    expect((await errorOf(guarded.signIn(started.url))).message).toContain("refusePrivateAddresses")
    const both = OAuth.make({ grant: job, outbound: { fetch, refusePrivateAddresses: true } })
    expect((await errorOf(both)).message).toContain("leave out fetch")
  })

  it("reports an option that is not valid", async () => {
    const options = { grant: Grant.clientCredentials({ clientId: "job", issuer: "https://login.example" }) }
    const error = await errorOf(OAuth.make(options))
    expect(error).toBeInstanceOf(OAuthError)
    expect((error as OAuthError).reason._tag).toBe("InvalidOptions")
  })
})
