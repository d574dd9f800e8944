import * as TestUser from "@skein/auth/TestUser"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as RawServer from "@skein/testing/RawServer"

/** A server of pages by path. It records the requests. */
const pages = (
  found: Readonly<
    Record<
      string,
      { readonly body?: string; readonly headers?: Record<string, string | Array<string>>; readonly status?: number }
    >
  >
) =>
  Effect.gen(function*() {
    const seen: Array<
      { readonly method: string; readonly url: string; readonly cookie: string; readonly body: string }
    > = []
    const { url } = yield* RawServer.http((request, response) => {
      const answer = (body: string) => {
        seen.push({ method: request.method!, url: request.url!, cookie: request.headers.cookie ?? "", body })
        const page = found[request.url!.split("?")[0]!]
        if (page === undefined) response.writeHead(404).end("there is nothing")
        else response.writeHead(page.status ?? 200, page.headers).end(page.body)
      }
      void RawServer.readBody(request).then(answer)
    })
    return { origin: url.origin, seen }
  })

const redirect = (location: string) => ({ status: 302, headers: { location } })

describe("TestUser", () => {
  it.effect("fills a form with a name and a password, and presses the button that agrees", () =>
    Effect.gen(function*() {
      const form = `<form action="/done" method="POST"><input type="hidden" name="csrf" value="a&amp;b">
        <input name="user"><input type=password name='pass'><button name="answer" value="cancel">Cancel</button>
        <button name="answer" value="ok">Sign in</button></form>`
      const { origin, seen } = yield* pages({ "/": { body: form }, "/done": { body: "welcome" } })
      const page = yield* TestUser.make({ name: "grace", password: "tea & cake" }).visit(origin)
      assert.strictEqual(page.html, "welcome")
      assert.deepStrictEqual([...new URLSearchParams(seen[1]!.body)], [
        ["csrf", "a&b"],
        ["user", "grace"],
        ["pass", "tea & cake"],
        ["answer", "ok"]
      ])
      yield* TestUser.make({ answer: "deny" }).visit(origin)
      assert.strictEqual(new URLSearchParams(seen[3]!.body).get("answer"), "cancel")
    }))

  it.effect("presses the button with its own name, and returns the parameters of the redirect without visiting it", () =>
    Effect.gen(function*() {
      const form = `<form method="post" action="/next"><button name="login" value="ada">Ada</button>
        <button name="login" value="grace">Grace</button></form>`
      const { origin, seen } = yield* pages({
        "/auth": { body: form },
        "/next": redirect("http://127.0.0.1:1/callback?code=c&state=s")
      })
      const url = `${origin}/auth?redirect_uri=${encodeURIComponent("http://127.0.0.1:1/callback")}`
      const answer = yield* TestUser.make({ name: "grace" }).signIn(url)
      assert.strictEqual(answer.get("code"), "c")
      assert.strictEqual(seen[1]!.body, "login=grace")
    }))

  it.effect("sends cookies back by path and host, forgets expired ones, and honours the prefix __Host-", () =>
    Effect.gen(function*() {
      const cookies = [
        "all=1; Path=/",
        "deep=2; Path=/deep",
        "gone=3; Max-Age=0",
        "__Host-loose=4; Path=/",
        "__Host-bound=5; Path=/; Secure",
        "old=6; Expires=Thu, 01 Jan 1970 00:00:00 GMT"
      ]
      const { origin, seen } = yield* pages({
        "/": { body: "hello", headers: { "set-cookie": cookies } },
        "/deep/er": { body: "hello" },
        "/deeper": { body: "hello" }
      })
      const user = TestUser.make()
      yield* user.open(origin)
      yield* user.open(`${origin}/deep/er`)
      yield* user.open(`${origin}/deeper`)
      assert.deepStrictEqual(seen.map(({ cookie }) => cookie), [
        "",
        "deep=2; all=1; __Host-bound=5",
        "all=1; __Host-bound=5"
      ])
    }))

  it.effect("fails instead of leaving loopback, of visiting pages without end, and at an error page", () =>
    Effect.gen(function*() {
      const { origin } = yield* pages({ "/away": redirect("https://tea.example/"), "/loop": redirect("/loop") })
      const away = yield* Effect.flip(TestUser.make().visit(`${origin}/away`))
      assert.include(away.message, "does not visit https://tea.example")
      const loop = yield* Effect.flip(TestUser.make().visit(`${origin}/loop`))
      assert.include(loop.message, "within 20 pages")
      const error = yield* Effect.flip(TestUser.make().signIn(`${origin}/nothing?redirect_uri=http://127.0.0.1:1/`))
      assert.include(error.message, "(404): there is nothing")
      const none = yield* Effect.flip(TestUser.make().signIn(origin))
      assert.include(none.message, "redirect_uri")
    }))
})
