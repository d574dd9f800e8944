/** The attacks on proxies of authorization servers: each is tried, and fails. */
import * as Proxy from "@skein/auth/Proxy"
import * as ProxyStore from "@skein/auth/ProxyStore"
import * as TestUser from "@skein/auth/TestUser"
import { assert, describe, it } from "@effect/vitest"
import type * as Http from "@skein/server/Http"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as oauth from "../devServer/kit.ts"
import { MinuteLimit } from "../../src/proxy/makeProxy.ts"
import * as kit from "./kit.ts"

const { redirectUri } = kit

/** A browser that sends exactly what a test says. */
const request = (url: string | URL, init: RequestInit = {}) =>
  Effect.promise(() =>
    fetch(url, { redirect: "manual", ...init }).then(async (reply) => ({
      status: reply.status,
      headers: reply.headers,
      location: reply.headers.get("location") ?? "",
      cookie: reply.headers.getSetCookie().map((line) => line.split(";")[0]).join("; "),
      setCookie: reply.headers.getSetCookie().join("\n"),
      html: await reply.text()
    }))
  )

const form = (cookie: string, fields: Readonly<Record<string, string>>): RequestInit => ({
  method: "POST",
  headers: { cookie, "content-type": "application/x-www-form-urlencoded" },
  body: new URLSearchParams(fields).toString()
})

/** A sign-in in the browser of a person, at the consent page. */
const begin = (
  running: kit.Running,
  params: Readonly<Record<string, string>> = {},
  options: Partial<oauth.ConnectOptions> = {}
) =>
  Effect.gen(function*() {
    const client = yield* oauth.connect(running.origin, { redirectUri, ...options })
    const url = yield* client.authorizationUrl({ scope: "tea:read", resource: running.resource, ...params })
    const first = yield* request(url)
    const page = new URL(first.location, running.origin)
    const consent = yield* request(page, { headers: { cookie: first.cookie } })
    const csrf = /name="csrf" value="([^"]*)"/.exec(consent.html)?.[1] ?? ""
    return { client, url, page, consent, csrf, cookie: first.cookie, setCookie: first.setCookie }
  })

describe("attacks on a proxy", () => {
  it.effect("2025-06-18 · confused deputy: asks for consent each time, also after the same person has agreed", () =>
    Effect.gen(function*() {
      const running = yield* kit.start()
      const victim = TestUser.make()
      const honest = yield* oauth.connect(running.origin, { redirectUri })
      const url = yield* honest.authorizationUrl({ scope: "tea:read", resource: running.resource })
      yield* honest.exchange(yield* victim.signIn(url))
      const attacker = yield* oauth.connect(running.origin, { redirectUri: "http://127.0.0.1:6666/steal" })
      for (const client of [attacker, honest]) {
        const page = yield* victim.open(
          yield* client.authorizationUrl({ scope: "tea:read", resource: running.resource })
        )
        assert.strictEqual(page.status, 200)
        assert.include(page.html, "asks for access to Tea House")
      }
      assert.deepInclude(yield* running.upstream.counts, { authorizations: 1 })
    }))

  it.effect("shows the name of a client shortened, and without characters that change the direction of writing", () =>
    Effect.gen(function*() {
      const running = yield* kit.start()
      const clientName = `Tea\u202ekcatta\u0000\u2066 ${"x".repeat(30_000)}`
      const { consent } = yield* begin(running, {}, { clientName })
      assert.strictEqual(consent.status, 200)
      assert.include(consent.html, "Tea\\u{202e}kcatta\\u{0}\\u{2066}")
      assert.notMatch(consent.html.replaceAll("\n", ""), /[\p{Cc}\p{Cf}]/u)
      assert.isBelow(consent.html.length, 6_000)
    }))

  it.effect("registers and accepts no redirect URI that reads differently for a browser and for this server", () =>
    Effect.gen(function*() {
      const running = yield* kit.start()
      const register = (uri: string) =>
        request(`${running.origin}/reg`, {
          method: "POST",
          headers: { "content-type": "application/json" },
          body: JSON.stringify({ redirect_uris: [uri], token_endpoint_auth_method: "none" })
        })
      const others = [
        "http://127.0.0.1:4999/call\r\nback",
        "http://127.0.0.1:4999/\tcallback",
        " http://127.0.0.1:4999/callback",
        "http://127.0.0.1:4999/callback\n",
        "http:\\\\127.0.0.1:4999/callback",
        "https:tea.example/callback",
        "https:/tea.example/callback",
        `https://${"x".repeat(60_000)}.example/`
      ]
      for (const uri of others) assert.strictEqual((yield* register(uri)).status, 400, uri.slice(0, 60))
      assert.strictEqual((yield* register(redirectUri)).status, 201)
      // `URL` compares the loopback URIs of a request without their ports.
      const client = yield* oauth.connect(running.origin, { redirectUri })
      const url = yield* client.authorizationUrl({ scope: "tea:read", resource: running.resource })
      for (
        const uri of ["http://127.0.0.1:5000/call\r\nback", `${redirectUri}\n`, "http:\\\\127.0.0.1:4999/callback"]
      ) {
        url.searchParams.set("redirect_uri", uri)
        const refused = yield* request(url)
        assert.strictEqual(refused.status, 400, uri)
        assert.include(refused.html, "invalid_redirect_uri")
      }
      url.searchParams.set("redirect_uri", "http://127.0.0.1:5000/callback")
      assert.strictEqual((yield* request(url)).status, 303)
    }))

  it.effect("a victim who finishes the attacker's sign-in at the upstream grants nothing (CVE-2026-27124)", () =>
    Effect.gen(function*() {
      const running = yield* kit.start()
      const attacker = yield* begin(running)
      const sent = yield* request(attacker.page, form(attacker.cookie, { answer: "allow", csrf: attacker.csrf }))
      assert.strictEqual(sent.status, 303)
      const upstreamUrl = new URL(sent.location)
      assert.strictEqual(upstreamUrl.origin, running.upstream.issuer)
      const victim = yield* TestUser.make().visit(upstreamUrl)
      assert.strictEqual(victim.status, 403)
      // The attacker has neither a code nor a way to go on.
      const resume = yield* request(`${running.origin}/auth/${attacker.page.pathname.split("/").at(-1)}`, {
        headers: { cookie: attacker.cookie }
      })
      assert.notInclude(resume.location, "code=")
    }))

  it.effect("refuses a consent page, a form and a callback without the cookie of the browser that began", () =>
    Effect.gen(function*() {
      const running = yield* kit.start()
      const one = yield* begin(running)
      const other = yield* begin(running)
      assert.strictEqual((yield* request(one.page)).status, 403)
      assert.strictEqual((yield* request(one.page, { headers: { cookie: other.cookie } })).status, 403)
      const posted = yield* request(one.page, form(other.cookie, { answer: "allow", csrf: one.csrf }))
      assert.strictEqual(posted.status, 403)
      const forged = one.cookie.replace(/=.{8}/, "=AAAAAAAA")
      assert.strictEqual((yield* request(one.page, { headers: { cookie: forged } })).status, 403)
    }))

  it.effect("refuses a form without its CSRF token, or with that of another sign-in", () =>
    Effect.gen(function*() {
      const running = yield* kit.start()
      const one = yield* begin(running)
      const other = yield* begin(running)
      for (const csrf of ["", "wrong", other.csrf]) {
        const refused = yield* request(one.page, form(one.cookie, { answer: "allow", csrf }))
        assert.strictEqual(refused.status, 403)
        assert.strictEqual(refused.location, "")
      }
      assert.strictEqual((yield* request(one.page, form(one.cookie, { answer: "allow", csrf: one.csrf }))).status, 303)
    }))

  it.effect("refuses a state that was guessed, used before, or is another sign-in's", () =>
    Effect.gen(function*() {
      const running = yield* kit.start()
      const one = yield* begin(running)
      const callback = (state: string, cookie: string) =>
        request(`${running.origin}/upstream/callback?code=c&state=${state}&iss=${running.upstream.issuer}`, {
          headers: { cookie }
        })
      assert.strictEqual((yield* callback("guess", one.cookie)).status, 403)
      const sent = yield* request(one.page, form(one.cookie, { answer: "allow", csrf: one.csrf }))
      const state = new URL(sent.location).searchParams.get("state")!
      const other = yield* begin(running)
      assert.strictEqual((yield* callback(state, other.cookie)).status, 403)
      // A code that the upstream does not know ends it, and the state is used up.
      assert.strictEqual((yield* callback(state, one.cookie)).status, 403)
      assert.strictEqual((yield* callback(state, one.cookie)).status, 403)
    }))

  it.effect("2025-11-25 · forbids framing and scripts, and escapes the name of a client", () =>
    Effect.gen(function*() {
      const running = yield* kit.start()
      const clientName = `<script>alert(1)</script>"'><img src=x onerror=alert(1)>`
      const { consent } = yield* begin(running, {}, { clientName })
      assert.strictEqual(consent.status, 200)
      assert.notInclude(consent.html, "<script")
      assert.notInclude(consent.html, "<img")
      assert.include(consent.html, "&#60;script&#62;")
      assert.strictEqual(consent.headers.get("x-frame-options"), "DENY")
      const policy = consent.headers.get("content-security-policy")!
      assert.include(policy, "frame-ancestors 'none'")
      assert.include(policy, "default-src 'none'")
      assert.strictEqual(consent.headers.get("referrer-policy"), "no-referrer")
      assert.strictEqual(consent.headers.get("cache-control"), "no-store")
    }))

  it.effect("2025-11-25 · names the client, the scopes, the upstream and the redirect on the consent page", () =>
    Effect.gen(function*() {
      const running = yield* kit.start()
      const { consent } = yield* begin(running, {}, { clientName: "Tea client" })
      const texts = ["Tea client", "tea:read", "to stay signed in", "Accounts", "openid offline_access"]
      for (const text of [...texts, "http://127.0.0.1:4999"]) {
        assert.include(consent.html, text)
      }
      assert.notInclude(consent.html, "tea:write")
      assert.include(consent.html, "<li>to stay signed in until you sign out of it</li>")
      // A client that gets no refresh token does not stay signed in.
      const once = yield* begin(running, {}, { metadata: { grant_types: ["authorization_code"] } })
      assert.notInclude(once.consent.html, "stay signed in")
    }))

  it.effect("sets one cookie: HttpOnly, SameSite=Lax, for one sign-in, and with nothing readable in it", () =>
    Effect.gen(function*() {
      const running = yield* kit.start()
      const { page, setCookie } = yield* begin(running)
      assert.match(setCookie, /; Path=\/; HttpOnly; SameSite=Lax$/)
      assert.notInclude(setCookie, "\n")
      const [name, value] = setCookie.split(";")[0]!.split("=")
      assert.include(name, page.pathname.split("/").at(-1)!)
      assert.notInclude(Buffer.from(value!, "base64url").toString("latin1"), "skein")
    }))

  it.effect("2026-07-28 · binds the cookie to this host over https: __Host-, Secure", () =>
    Effect.gen(function*() {
      const proxy = yield* Proxy.make({
        resource: "https://tea.example/mcp",
        scopes: ["tea:read"],
        keys: [kit.key],
        upstream: {
          name: "Accounts",
          issuer: "https://accounts.example",
          clientId: "tea",
          clientSecret: Redacted.make("secret")
        }
      }).pipe(Effect.provide(ProxyStore.layerMemory))
      const ask = (method: string, path: string, query?: string, body = "") =>
        Effect.callback<{ readonly status: number; readonly headers: Http.Headers; readonly body: string }>(
          (resume) => {
            const type = { "content-type": "application/json" }
            const page = {
              ...{ method, path, query, size: 0, params: undefined },
              header: (name: string) => (type as Record<string, string>)[name],
              read: (_limit: number, done: (body: Http.Body) => void) => done({ text: body })
            }
            const answer = {
              addHeaders: () => {},
              reply: (status: number, headers: Http.Headers, text: string) =>
                resume(Effect.succeed({ status, headers, body: text }))
            }
            assert.isTrue(proxy.protection.pages!(page, answer as unknown as Http.HttpAnswer))
          }
        )
      const registered = yield* ask(
        "POST",
        "/reg",
        undefined,
        JSON.stringify({
          redirect_uris: [redirectUri],
          application_type: "native",
          token_endpoint_auth_method: "none"
        })
      )
      assert.strictEqual(registered.status, 201)
      const query = new URLSearchParams({
        client_id: JSON.parse(registered.body).client_id,
        redirect_uri: redirectUri,
        response_type: "code",
        code_challenge: "c".repeat(43),
        code_challenge_method: "S256"
      })
      const begun = yield* ask("GET", "/auth", query.toString())
      assert.match(
        begun.headers["set-cookie"]!,
        /^__Host-skein_[^=]+=[^;]+; Max-Age=600; Path=\/; HttpOnly; SameSite=Lax; Secure$/
      )
      const metadata = JSON.parse((yield* ask("GET", "/.well-known/oauth-authorization-server")).body)
      assert.strictEqual(metadata.issuer, "https://tea.example")
      assert.strictEqual(metadata.token_endpoint, "https://tea.example/token")
    }))

  it.effect("refuses redirect URIs that run, read or lead elsewhere: at registration and at authorization", () =>
    Effect.gen(function*() {
      const running = yield* kit.start()
      const bad = [
        "javascript:alert(1)",
        "JavaScript:alert(1)",
        "data:text/html,x",
        "file:///etc/passwd",
        "vbscript:x",
        "http://evil.example/callback",
        "https://user:pass@evil.example/callback",
        "https://tea.example/callback#fragment"
      ]
      for (const uri of bad) {
        for (const application_type of ["native", "web"]) {
          const { status } = yield* oauth.register(running.origin, { redirectUri: uri, metadata: { application_type } })
          assert.strictEqual(status, 400, `${application_type} ${uri}`)
        }
      }
      const client = yield* oauth.connect(running.origin, { redirectUri })
      const elsewhere = [
        "http://127.0.0.1:4999/callback/../steal",
        "http://127.0.0.1:4999/callbackx",
        "http://127.0.0.1:4999/callback?next=https://evil.example",
        "http://127.0.0.1.evil.example/callback",
        "https://evil.example/callback"
      ]
      for (const redirect_uri of elsewhere) {
        const url = yield* client.authorizationUrl({ resource: running.resource, redirect_uri })
        const refused = yield* request(url)
        assert.strictEqual(refused.status, 400, redirect_uri)
        assert.strictEqual(refused.location, "")
      }
    }))

  it.effect("allows only the redirect URIs of the option, exactly, and loopback on every port", () =>
    Effect.gen(function*() {
      const allowed = "https://claude.example/callback"
      const running = yield* kit.start({ proxy: { redirectUris: ["loopback", allowed] } })
      const statusOf = (uri: string) =>
        Effect.map(oauth.register(running.origin, { redirectUri: uri }), ({ status }) => status)
      assert.strictEqual(yield* statusOf(allowed), 201)
      assert.strictEqual(yield* statusOf("http://localhost:1/any"), 201)
      assert.strictEqual(yield* statusOf(`${allowed}/`), 400)
      assert.strictEqual(yield* statusOf("https://other.example/callback"), 400)
      assert.strictEqual(yield* statusOf("cursor://anysphere.cursor/callback"), 400)
    }))

  it.effect("refuses a token for another resource, and a code that is used twice", () =>
    Effect.gen(function*() {
      const running = yield* kit.start()
      const client = yield* oauth.connect(running.origin, { redirectUri })
      const foreign = yield* client.authorizationUrl({ scope: "tea:read", resource: `${running.resource}/` })
      assert.strictEqual((yield* TestUser.make().signIn(foreign)).get("error"), "invalid_target")
      const url = yield* client.authorizationUrl({ scope: "tea:read", resource: running.resource })
      const answer = yield* TestUser.make().signIn(url)
      const first = yield* client.exchangeRaw(answer)
      assert.strictEqual(first.status, 200)
      const twice = yield* client.exchangeRaw(answer)
      assert.strictEqual(twice.body["error"], "invalid_grant")
      // The second use of a code ends what the first one gave (OAuth 2.1, 4.1.3).
      assert.strictEqual((yield* client.refresh(String(first.body["refresh_token"]))).body["error"], "invalid_grant")
    }))

  it.effect("denies: nothing reaches the upstream, and the client gets access_denied", () =>
    Effect.gen(function*() {
      const running = yield* kit.start()
      const client = yield* oauth.connect(running.origin, { redirectUri })
      const url = yield* client.authorizationUrl({ scope: "tea:read", resource: running.resource })
      const answer = yield* TestUser.make({ answer: "deny" }).signIn(url)
      assert.strictEqual(answer.get("error"), "access_denied")
      assert.deepInclude(yield* running.upstream.counts, { authorizations: 0 })
    }))

  it.effect("drops the oldest sign-ins of a browser, whose cookies would lock it out", () =>
    Effect.gen(function*() {
      const running = yield* kit.start()
      const client = yield* oauth.connect(running.origin, { redirectUri })
      const jar = new Map<string, string>()
      const visit = (url: URL) =>
        Effect.map(
          request(url, { headers: { cookie: [...jar].map(([name, value]) => `${name}=${value}`).join("; ") } }),
          (reply) => {
            const [, name = "", value = "", rest = ""] = /^([^=]+)=([^;]*)(.*)$/.exec(reply.setCookie) ?? []
            if (rest.includes("Max-Age=0")) jar.delete(name)
            else if (name !== "") jar.set(name, value)
            return reply
          }
        )
      for (let n = 0; n < 50; n++) {
        const url = yield* client.authorizationUrl({ scope: "tea:read", resource: running.resource })
        let reply = yield* visit(url)
        if (reply.location.startsWith("/auth?")) reply = yield* visit(new URL(reply.location, running.origin))
        assert.strictEqual((yield* visit(new URL(reply.location, running.origin))).status, 200)
        assert.isAtMost(jar.size, 16)
      }
    }))

  it.effect("displaces no token of a person by sign-ins that anybody begins, in the store in memory", () =>
    Effect.gen(function*() {
      const store = ProxyStore.makeMemory()
      yield* store.set("Key signing", "key")
      for (let n = 0; n < 100; n++) {
        yield* store.set(`RefreshToken ${n}`, "token", { expiresAt: Date.now() + 86_400_000 })
      }
      for (let n = 0; n < 25_000; n++) yield* store.set(`Interaction ${n}`, "{}", { expiresAt: Date.now() + 600_000 })
      const kept = ["Key signing", "RefreshToken 0", "RefreshToken 99", "Interaction 24999"]
      for (const key of kept) assert.isTrue(Option.isSome(yield* store.get(key)), key)
      assert.isTrue(Option.isNone(yield* store.get("Interaction 0")))
    }))

  it("counts registrations of an IPv6 network together", () => {
    const limit = new MinuteLimit(2)
    const allowed = [1, 2, 3].map((host) => limit.allows({ address: `2001:db8::${host}` }, 0))
    assert.deepEqual(allowed, [true, true, false])
    assert.isTrue(limit.allows({ address: "2001:db8:0:1::1" }, 0))
  })

  it("does not let one client of an unknown address lock out the others", () => {
    const limit = new MinuteLimit(20)
    const allowed = Array.from({ length: 1_001 }, () => limit.allows({ address: undefined }, 0))
    assert.strictEqual(allowed.indexOf(false), 1_000)
    assert.isTrue(limit.allows({ address: undefined }, 60_000))
  })

  it.effect("bounds how often one network address answers the consent page in a minute", () =>
    Effect.gen(function*() {
      const store = ProxyStore.makeMemory()
      let records = 0
      const set: typeof store.set = (key, value, options) => {
        if (key.startsWith("State ")) records++
        return store.set(key, value, options)
      }
      const running = yield* kit.start({ proxy: { maxSignInsPerMinute: 3 }, store: { ...store, set } })
      const one = yield* begin(running)
      const answer = form(one.cookie, { answer: "allow", csrf: one.csrf })
      const replies = yield* Effect.all(Array.from({ length: 8 }, () => request(one.page, answer)))
      const refused = replies.filter(({ status }) => status === 429)
      // A minute may end in between.
      assert.isAtLeast(refused.length, 2)
      assert.strictEqual(replies[0]!.status, 303)
      assert.strictEqual(records + refused.length, 8)
    }))

  it.effect("bounds the sign-ins that one network address begins in a minute", () =>
    Effect.gen(function*() {
      const store = ProxyStore.makeMemory()
      let records = 0
      const set: typeof store.set = (key, value, options) => {
        if (key.startsWith("Interaction ")) records++
        return store.set(key, value, options)
      }
      const running = yield* kit.start({ proxy: { maxSignInsPerMinute: 3 }, store: { ...store, set } })
      const client = yield* oauth.connect(running.origin, { redirectUri })
      const url = yield* client.authorizationUrl({ scope: "tea:read", resource: running.resource })
      const replies = yield* Effect.all(Array.from({ length: 8 }, () => request(url)))
      const refused = replies.filter(({ status }) => status === 429)
      // A minute may end in between.
      assert.isAtLeast(refused.length, 2)
      assert.strictEqual(records, replies.filter(({ status }) => status === 303).length)
      assert.strictEqual(records + refused.length, 8)
      for (const { headers, html } of refused) {
        assert.strictEqual(headers.get("retry-after"), "60")
        assert.include(html, "Too many sign-ins")
      }
    }))

  it.effect("bounds registrations per address and minute, and the size of a body", () =>
    Effect.gen(function*() {
      const running = yield* kit.start({ proxy: { maxSignInsPerMinute: 9 } })
      const statuses = yield* Effect.all(
        Array.from({ length: 8 }, () =>
          Effect.map(oauth.register(running.origin, { redirectUri }), ({ status }) => status))
      )
      // A minute may end in between.
      assert.isAtMost(
        statuses.filter((status) =>
          status === 201
        ).length,
        6
      )
      assert.include(statuses, 429)
      const large = yield* request(`${running.origin}/token`, form("", { grant_type: "x".repeat(70_000) }))
      assert.strictEqual(large.status, 413)
    }))
})
