/**
 * The sign-in at a proxy in a real browser, and the attacks that a browser decides. Needs Chromium: Debian's package
 * `chromium`, or the executable in `CHROMIUM`.
 */
import * as Outbound from "@skein/auth/Outbound"
import * as ProxyStore from "@skein/auth/ProxyStore"
import { assert, describe, it } from "@effect/vitest"
import * as RawServer from "@skein/testing/RawServer"
import * as Effect from "effect/Effect"
import { find } from "../../../client/test/browser/chromium.ts"
import * as oauth from "../devServer/kit.ts"
import { browser } from "./chromium.ts"
import * as kit from "./kit.ts"

/** A client with a port for its redirect. It keeps the addresses that arrive. */
const listening = (running: kit.Running, clientName = "Tea client") =>
  Effect.gen(function*() {
    const arrived: Array<URL> = []
    const { url } = yield* RawServer.http((request, response) => {
      if (request.url!.startsWith("/callback")) arrived.push(new URL(request.url!, "http://127.0.0.1"))
      response.writeHead(200, { "content-type": "text/html" }).end("<p id=done>done</p>")
    })
    const client = yield* oauth.connect(running.origin, { redirectUri: `${url.origin}/callback`, clientName })
    const address = client.authorizationUrl({ scope: "tea:read", resource: running.resource })
    return { address, arrived, client }
  })

/** A page of another site. */
const page = (body: string) =>
  Effect.map(
    RawServer.http((_request, response) => response.writeHead(200, { "content-type": "text/html" }).end(body)),
    // Another host is another site; 127.0.0.1 with another port is not.
    ({ url }) => `http://localhost:${url.port}/`
  )

const chromium = find()

if (chromium === undefined) {
  const name = "a browser is needed: install Debian's `chromium`, or set CHROMIUM to one"
  it.skipIf((process.env["CI"] ?? "") === "")(name, () => assert.fail("there is no Chromium in the PATH"))
} else {
  describe("a proxy in Chromium", () => {
    it.live("signs a person in: consent, sign-in upstream, and back to the client", () =>
      Effect.gen(function*() {
        const running = yield* kit.start()
        const { address, arrived, client } = yield* listening(running)
        const tab = yield* Effect.flatMap(browser(chromium), (open) => Effect.promise(open))
        const url = yield* address
        yield* Effect.promise(async () => {
          await tab.goto(url)
          assert.include(
            String(await tab.evaluate("document.body.innerText")),
            "Tea client asks for access to Tea House"
          )
          await tab.press("allow")
          await tab.press("ada")
          await tab.press("allow")
          await tab.until("document.querySelector('#done')")
        })
        const tokens = yield* client.exchange(arrived[0]!.searchParams)
        assert.strictEqual((yield* kit.call(running.resource, tokens.access_token)).user.sub, "ada")
      }))

    it.live("returns access_denied to the client if the person denies", () =>
      Effect.gen(function*() {
        const running = yield* kit.start()
        const { address, arrived } = yield* listening(running)
        const tab = yield* Effect.flatMap(browser(chromium), (open) => Effect.promise(open))
        const url = yield* address
        yield* Effect.promise(async () => {
          await tab.goto(url)
          await tab.press("deny")
          await tab.until("document.querySelector('#done')")
        })
        assert.strictEqual(arrived[0]!.searchParams.get("error"), "access_denied")
      }))

    it.live("grants nothing to an attacker whose sign-in a victim finishes in another browser", () =>
      Effect.gen(function*() {
        const running = yield* kit.start()
        const { address, arrived } = yield* listening(running)
        const sent = running.redirects
        const open = yield* browser(chromium)
        const url = yield* address
        yield* Effect.promise(async () => {
          const [attacker, victim] = [await open(), await open()]
          await attacker.goto(url)
          await attacker.press("allow")
          // The attacker sends the address that the proxy made to the victim: the browser's history has it.
          const lure = sent.at(-1)!
          assert.isTrue(lure.startsWith(running.upstream.issuer))
          await victim.goto(lure)
          await victim.press("ada")
          await victim.press("allow")
          assert.match(String(await victim.evaluate("document.body.innerText")), /cannot (go on|be answered)/)
        })
        assert.deepStrictEqual(arrived, [])
      }))

    it.live("is not shown in a frame of another site, and runs no script of a client's name", () =>
      Effect.gen(function*() {
        const running = yield* kit.start()
        const { address } = yield* listening(
          running,
          "<img src=x onerror='window.hit = 1'><script>window.hit = 1</script>"
        )
        const url = yield* address
        const evil = yield* page(`<iframe src="${url.href.replaceAll("&", "&amp;")}"></iframe><p>evil</p>`)
        const tab = yield* Effect.flatMap(browser(chromium), (open) => Effect.promise(open))
        yield* Effect.promise(async () => {
          await tab.goto(evil)
          await tab.logged("frame-ancestors 'none'")
          await tab.goto(url)
          await tab.until("document.querySelector('button')")
          assert.strictEqual(await tab.evaluate("typeof window.hit"), "undefined")
          assert.include(String(await tab.evaluate("document.querySelector('h1').innerText")), "<img src=x")
        })
      }))

    it.live("refuses a form that a page of another site sends", () =>
      Effect.gen(function*() {
        const running = yield* kit.start()
        const { address } = yield* listening(running)
        const url = yield* address
        const tab = yield* Effect.flatMap(browser(chromium), (open) => Effect.promise(open))
        yield* Effect.promise(() => tab.goto(url))
        const consent = String(yield* Effect.promise(() => tab.evaluate("location.href")))
        const csrf = String(yield* Effect.promise(() => tab.evaluate("document.querySelector('[name=csrf]').value")))
        // Even with the right token: the cookie is not sent along.
        const evil = yield* page(
          `<form method=post action="${consent}"><input name=csrf value="${csrf}"><button name=answer value=allow></button></form>`
        )
        yield* Effect.promise(async () => {
          await tab.goto(evil)
          await tab.press("allow")
          assert.include(String(await tab.evaluate("document.body.innerText")), "cannot go on")
        })
        assert.deepInclude(yield* running.upstream.counts, { authorizations: 0 })
      }))

    it.live("asks again when another client, or the same one, uses a consent that the person gave before", () =>
      Effect.gen(function*() {
        const running = yield* kit.start()
        const honest = yield* listening(running, "Honest client")
        const attacker = yield* listening(running, "Honest client")
        const tab = yield* Effect.flatMap(browser(chromium), (open) => Effect.promise(open))
        const [first, second, lure] = [yield* honest.address, yield* honest.address, yield* attacker.address]
        yield* Effect.promise(async () => {
          await tab.goto(first)
          await tab.press("allow")
          await tab.press("ada")
          await tab.press("allow")
          await tab.until("document.querySelector('#done')")
          // The browser has all cookies of the sign-in, here and at the upstream.
          for (const url of [lure, second]) {
            await tab.goto(url)
            await tab.until("document.querySelector('button[value=allow]')")
            assert.include(String(await tab.evaluate("document.body.innerText")), "asks for access to Tea House")
            assert.strictEqual(new URL(String(await tab.evaluate("location.href"))).origin, running.origin)
          }
        })
        assert.strictEqual(honest.arrived.length, 1)
        assert.deepStrictEqual(attacker.arrived, [])
        assert.deepInclude(yield* running.upstream.counts, { authorizations: 1 })
      }))

    it.live("has no state before the consent, and refuses one that was guessed, or is of another browser", () =>
      Effect.gen(function*() {
        const running = yield* kit.start()
        const { address, arrived } = yield* listening(running)
        const open = yield* browser(chromium)
        const [url, victims] = [yield* address, yield* address]
        const states = () =>
          running.redirects.filter((one) => new URL(one, running.origin).origin === running.upstream.issuer)
        const callback = (state: string) =>
          `${running.origin}/upstream/callback?code=c&state=${state}&iss=${encodeURIComponent(running.upstream.issuer)}`
        yield* Effect.promise(async () => {
          const [attacker, victim] = [await open(), await open()]
          await attacker.goto(url)
          await attacker.until("document.querySelector('button')")
          assert.deepStrictEqual(states(), [])
          await attacker.press("allow")
          const state = new URL(states()[0]!).searchParams.get("state")!
          assert.isAtLeast(state.length, 43)
          // The victim has a sign-in of its own, and follows a link of the attacker.
          await victim.goto(victims)
          await victim.until("document.querySelector('button')")
          for (const one of ["guessed", state]) {
            await victim.goto(callback(one))
            assert.match(String(await victim.evaluate("document.body.innerText")), /cannot (go on|be answered)/)
          }
        })
        assert.deepStrictEqual(arrived, [])
      }))

    it.live("leads nowhere with a redirect URI that the client did not register, or that would run", () =>
      Effect.gen(function*() {
        const running = yield* kit.start()
        const elsewhere = yield* page("<p id=elsewhere>elsewhere</p>")
        const client = yield* oauth.connect(running.origin, { redirectUri: kit.redirectUri })
        const tab = yield* Effect.flatMap(browser(chromium), (open) => Effect.promise(open))
        const uris = [
          elsewhere,
          "javascript:window.hit=1",
          "data:text/html,<p id=elsewhere>",
          "//evil.example/callback",
          `${kit.redirectUri}@${new URL(elsewhere).host}`
        ]
        for (const redirect_uri of uris) {
          // An error of the request does not redirect either (RFC 6749, 4.1.2.1).
          for (const more of [{}, { response_type: "token" }, { code_challenge: "" }]) {
            const url = yield* client.authorizationUrl({ resource: running.resource, redirect_uri, ...more })
            yield* Effect.promise(async () => {
              await tab.goto(url)
              const text = String(await tab.evaluate("document.body.innerText"))
              assert.include(text, "This request cannot be answered", redirect_uri)
              assert.strictEqual(await tab.evaluate("location.origin"), running.origin)
              assert.strictEqual(await tab.evaluate("typeof window.hit"), "undefined")
            })
          }
        }
      }))

    it.live("gives a copy of the database no way into a sign-in, and no token", () =>
      Effect.gen(function*() {
        const inner = ProxyStore.makeMemory()
        const copy = new Map<string, string>()
        const store: ProxyStore.ProxyStore["Service"] = {
          ...inner,
          set: (key, value, options) => {
            copy.set(key, value)
            return inner.set(key, value, options)
          }
        }
        const running = yield* kit.start({ store })
        const { address, arrived, client } = yield* listening(running)
        const open = yield* browser(chromium)
        const [finished, url] = [yield* address, yield* address]
        const [victim, attacker] = [yield* Effect.promise(open), yield* Effect.promise(open)]
        yield* Effect.promise(async () => {
          await victim.goto(finished)
          await victim.press("allow")
          await victim.press("ada")
          await victim.press("allow")
          await victim.until("document.querySelector('#done')")
        })
        const tokens = yield* client.exchange(arrived[0]!.searchParams)
        yield* Effect.promise(async () => {
          await victim.goto(url)
          await victim.press("allow")
        })
        const { port } = new URL(running.origin)
        const entries = [...copy]
        assert.isAbove(entries.filter(([key]) => key.startsWith("Interaction ")).length, 0)
        yield* Effect.promise(async () => {
          for (const [key, value] of entries.filter(([key]) => /^(Interaction|State|Session) /.test(key))) {
            const id = key.split(" ")[1]!
            await attacker.goto(`${running.origin}/.well-known/oauth-authorization-server`)
            await attacker.evaluate(`document.cookie = "skein_${port}_${id}=${value}"`)
            for (const path of [`interaction/${id}`, `auth/${id}`, `upstream/callback?code=c&state=${id}`]) {
              await attacker.goto(`${running.origin}/${path}`)
              const text = String(await attacker.evaluate("document.body.innerText"))
              assert.match(text, /cannot (go on|be answered)/, `${key} ${path}`)
            }
          }
        })
        for (const [key, value] of entries.filter(([key]) => /^(RefreshToken|AuthorizationCode|Upstream) /.test(key))) {
          for (const token of [key.split(" ")[1]!, value]) {
            assert.strictEqual((yield* client.refresh(token)).body["error"], "invalid_grant")
            assert.strictEqual(yield* kit.statusOf(running.resource, token), 401)
          }
        }
        assert.strictEqual((yield* client.refresh(tokens.refresh_token!)).status, 200)
      }))

    it.live("2026-07-28 · shows the host of a redirect, and warns of a document with localhost", () =>
      Effect.gen(function*() {
        const published = "https://client.example/metadata.json"
        const document = { client_id: published, client_name: "Tea client", redirect_uris: [kit.redirectUri] }
        const running = yield* kit.start({
          proxy: { outbound: Outbound.make({ fetch: () => Promise.resolve(Response.json(document)) }) }
        })
        const client = yield* oauth.connect(running.origin, { clientId: published, redirectUri: kit.redirectUri })
        const url = yield* client.authorizationUrl({ scope: "tea:read", resource: running.resource })
        const tab = yield* Effect.flatMap(browser(chromium), (open) => Effect.promise(open))
        yield* Effect.promise(async () => {
          await tab.goto(url)
          await tab.until("document.querySelector('button')")
          const text = String(await tab.evaluate("document.body.innerText"))
          for (const one of ["client.example", "http://127.0.0.1:4999", "Any program on this computer"]) {
            assert.include(text, one)
          }
          // Both are seen, and not only in the text.
          assert.strictEqual(
            await tab.evaluate(`[...document.querySelectorAll("code, .warn")].every((one) => one.offsetHeight > 0)`),
            true
          )
        })
      }))
  })
}
