/** The server that a browser comes back to, over real sockets. */
import { assert, describe, it } from "@effect/vitest"
import * as Loopback from "@skein/auth/Loopback"
import type * as SignIn from "@skein/auth/SignIn"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import type * as Scope from "effect/Scope"
import * as TestClock from "effect/testing/TestClock"
import { createServer, type Server } from "node:http"
import { type AddressInfo, connect, type Socket } from "node:net"
import { listens, page, registered, send, unregistered } from "./kit.ts"
import { SignInBounds } from "../../src/client/node/bounds.ts"

const silent: Loopback.Options = { open: () => Effect.void }

interface Started {
  readonly redirectUri: string
  readonly answer: Fiber.Fiber<URLSearchParams, SignIn.SignInError | SignIn.RedirectRequired>
}

/** Opens a sign-in with the state `s1`, up to the point where its page is open. */
const start = (
  options: Loopback.Options = silent,
  opening: SignIn.OpenOptions = unregistered
): Effect.Effect<Started, SignIn.SignInError, Scope.Scope> =>
  Effect.gen(function*() {
    const { authorize, redirectUri } = yield* Loopback.make(options).open(opening)
    return { redirectUri, answer: yield* Effect.forkScoped(authorize(page, "s1"), { startImmediately: true }) }
  })

/** Starts a sign-in with lower bounds. */
const lowered = (bounds: Partial<SignInBounds>): Effect.Effect<Started, SignIn.SignInError, Scope.Scope> =>
  Effect.updateService(start(), SignInBounds, (defaults) => ({ ...defaults, ...bounds }))

const get = (url: string, options?: Parameters<typeof send>[1]) => Effect.promise(() => send(url, options))

/** A port that another program uses. */
const taken = (host = "127.0.0.1"): Effect.Effect<number, never, Scope.Scope> =>
  Effect.map(
    Effect.acquireRelease(
      Effect.promise<Server>(() =>
        new Promise((resolve) => {
          const server = createServer().listen(0, host, () => resolve(server))
        })
      ),
      (server) => Effect.sync(() => void server.close())
    ),
    (server) => (server.address() as AddressInfo).port
  )

/** A port that was free a moment ago. */
const free = Effect.scoped(taken())

const portOf = (uri: string): number => Number(new URL(uri).port)

describe("Loopback", () => {
  it.live("RFC 8252, 7.3 · receives the answer on 127.0.0.1, and closes its port with the sign-in", () =>
    Effect.gen(function*() {
      let opened: URL | undefined
      const port = yield* Effect.scoped(Effect.gen(function*() {
        const { answer, redirectUri } = yield* start({ open: (url) => Effect.sync(() => void (opened = url)) })
        assert.match(redirectUri, /^http:\/\/127\.0\.0\.1:\d+\/callback$/)
        const { body, status } = yield* get(`${redirectUri}?code=c1&state=s1&iss=https%3A%2F%2Flogin.example`)
        assert.strictEqual(status, 200)
        assert.include(body, "You may close this page.")
        const params = yield* Fiber.join(answer)
        assert.deepStrictEqual([...params], [["code", "c1"], ["state", "s1"], ["iss", "https://login.example"]])
        return portOf(redirectUri)
      }))
      assert.strictEqual(opened, page)
      assert.isFalse(yield* Effect.promise(() => listens(port)))
    }))

  it.live("opens the page by an async function, and prints its URL by another if that rejects", () =>
    Effect.scoped(Effect.gen(function*() {
      const printed = Promise.withResolvers<string>()
      const { answer, redirectUri } = yield* start({
        open: async () => Promise.reject(new Error("no window")),
        print: async (text) => printed.resolve(text)
      })
      assert.include(yield* Effect.promise(() => printed.promise), page.href)
      yield* get(`${redirectUri}?code=c1&state=s1`)
      assert.strictEqual((yield* Fiber.join(answer)).get("code"), "c1")
    })))

  it.live("returns an answer with an error as an answer, and shows another page", () =>
    Effect.scoped(Effect.gen(function*() {
      const { answer, redirectUri } = yield* start()
      const { body } = yield* get(`${redirectUri}?error=access_denied&error_description=planted&state=s1`)
      assert.include(body, "You are not signed in")
      assert.notInclude(body, "planted")
      assert.strictEqual((yield* Fiber.join(answer)).get("error"), "access_denied")
    })))

  it.live("2026-07-28 · state · ignores each request that is not its answer", () =>
    Effect.scoped(Effect.gen(function*() {
      const { answer, redirectUri } = yield* start()
      const good = `${redirectUri}?code=planted&state=s1`
      const origin = new URL(redirectUri).origin
      const others: ReadonlyArray<readonly [status: number, url: string, options?: Parameters<typeof send>[1]]> = [
        [404, `${redirectUri}?code=planted&state=s2`],
        [404, `${redirectUri}?code=planted&state=`],
        [404, `${redirectUri}?code=planted&state=s1&state=s1`],
        [404, `${redirectUri}?code=planted&state=s1&state=s2`],
        [404, `${redirectUri}?code=planted`],
        [404, redirectUri],
        [404, `${origin}/favicon.ico`],
        [404, `${origin}/callback/?code=planted&state=s1`],
        [404, `${origin}//evil.example/callback?code=planted&state=s1`],
        [421, good, { headers: { host: `evil.example:${portOf(redirectUri)}` } }],
        [421, good, { headers: { host: "127.0.0.1" } }],
        [421, good, { headers: { host: `localhost:${portOf(redirectUri)}` } }],
        [405, good, { method: "HEAD" }],
        [405, good, { method: "POST", body: "planted" }],
        [405, good, { method: "OPTIONS" }],
        [503, good, { headers: { "sec-purpose": "prefetch;prerender" } }],
        [503, good, { headers: { purpose: "prefetch" } }],
        [503, good, { headers: { "x-moz": "prefetch" } }]
      ]
      for (const [status, url, options] of others) {
        const reply = yield* get(url, options)
        assert.deepStrictEqual([url, options, reply.status], [url, options, status])
        assert.notInclude(reply.body, "planted")
      }
      assert.strictEqual(answer.pollUnsafe(), undefined)
      yield* get(good)
      assert.strictEqual((yield* Fiber.join(answer)).get("code"), "planted")
    })))

  it.live("repeats nothing of a request, loads nothing, and sends no address to other sites", () =>
    Effect.scoped(Effect.gen(function*() {
      const { redirectUri } = yield* start({ ...silent, name: "<b>Tea & \"Co\"</b>" })
      const planted = { cookie: "planted", "user-agent": "planted", origin: "https://planted.example" }
      for (
        const query of ["?code=planted&state=other&x=planted", "?code=planted&state=s1&x=<script>planted</script>"]
      ) {
        const { body, headers } = yield* get(`${redirectUri}${query}`, { headers: planted })
        assert.notInclude(body + JSON.stringify(headers), "planted")
        assert.notInclude(body, "<b>")
        assert.include(body, "&#60;b&#62;Tea &#38; &#34;Co&#34;&#60;/b&#62;")
        assert.match(headers["content-security-policy"] as string, /^default-src 'none'; .*frame-ancestors 'none'$/)
        assert.strictEqual(headers["referrer-policy"], "no-referrer")
        assert.strictEqual(headers["cache-control"], "no-store")
        assert.strictEqual(headers["x-content-type-options"], "nosniff")
        assert.notMatch(body, /<script|https?:/)
      }
    })))

  it.live("closes its port when the sign-in is interrupted", () =>
    Effect.gen(function*() {
      const opened = yield* Deferred.make<string>()
      const fiber = yield* Effect.forkChild(Effect.scoped(Effect.gen(function*() {
        const { authorize, redirectUri } = yield* Loopback.make(silent).open(unregistered)
        yield* Deferred.succeed(opened, redirectUri)
        return yield* authorize(page, "s1")
      })))
      const port = portOf(yield* Deferred.await(opened))
      assert.isTrue(yield* Effect.promise(() => listens(port)))
      yield* Fiber.interrupt(fiber)
      assert.isFalse(yield* Effect.promise(() => listens(port)))
    }))

  it.live("closes its port although connections are open", () =>
    Effect.gen(function*() {
      const port = yield* Effect.scoped(Effect.gen(function*() {
        const { redirectUri } = yield* start()
        const port = portOf(redirectUri)
        yield* Effect.promise<void>(() =>
          new Promise((done) => connect(port, "127.0.0.1").on("error", () => {}).on("connect", done))
        )
        return port
      }))
      assert.isFalse(yield* Effect.promise(() => listens(port)))
    }))
})

describe("the port of Loopback", () => {
  const uriOf = (options: Loopback.Options, opening: SignIn.OpenOptions) =>
    Effect.scoped(Effect.map(start({ ...silent, ...options }, opening), ({ redirectUri }) => redirectUri))

  it.live("is the one that the client registered with, then one of `ports`, then any", () =>
    Effect.scoped(Effect.gen(function*() {
      const [used, other, ours] = [yield* taken(), yield* free, yield* free]
      const known = (port: number) => ({ ...unregistered, redirectUris: [`http://127.0.0.1:${port}/callback`] })
      assert.strictEqual(portOf(yield* uriOf({ ports: [other] }, known(ours))), ours)
      assert.strictEqual(portOf(yield* uriOf({ ports: [used, other] }, known(used))), other)
      assert.notInclude([used, ours, other], portOf(yield* uriOf({ ports: [used] }, known(used))))
      // A redirect URI of another path is not the one of this sign-in.
      const elsewhere = { ...unregistered, redirectUris: [`http://127.0.0.1:${used}/other`] }
      assert.match(yield* uriOf({}, elsewhere), /\/callback$/)
    })))

  it.live("is any one where the registered redirect URI has none, and its text stays", () =>
    Effect.gen(function*() {
      const opening = registered("https://tea.example/cb", "http://127.0.0.1/a/%7Eb?x=1")
      const uri = yield* uriOf({}, opening)
      assert.match(uri, /^http:\/\/127\.0\.0\.1:\d+\/a\/%7Eb\?x=1$/)
      const ours = yield* free
      assert.strictEqual(yield* uriOf({ ports: [ours] }, opening), `http://127.0.0.1:${ours}/a/%7Eb?x=1`)
      const bare = yield* uriOf({}, registered("http://127.0.0.1"))
      assert.match(bare, /^http:\/\/127\.0\.0\.1:\d+$/)
    }))

  it.live("answers a redirect URI with a query", () =>
    Effect.scoped(Effect.gen(function*() {
      const { answer, redirectUri } = yield* start(silent, registered("http://127.0.0.1/cb?x=1"))
      assert.strictEqual((yield* get(`${redirectUri}&code=c1&state=s1`)).status, 200)
      assert.strictEqual((yield* Fiber.join(answer)).get("code"), "c1")
    })))

  it.live("fails with the way out where all registered ports are taken", () =>
    Effect.scoped(Effect.gen(function*() {
      const [one, two] = [yield* taken(), yield* taken()]
      const uris = [one, two].map((port) => `http://127.0.0.1:${port}/cb`)
      const error = yield* Effect.flip(uriOf({ ports: [yield* free] }, registered(...uris)))
      assert.include(error.message, `No port of the registered redirect URIs is free (${one}, ${two})`)
      assert.include(error.message, "EADDRINUSE")
      assert.include(error.message, "register a redirect URI without a port: http://127.0.0.1/cb")
      const ours = yield* free
      assert.strictEqual(
        yield* uriOf({}, registered(...uris, `http://127.0.0.1:${ours}/cb`)),
        `http://127.0.0.1:${ours}/cb`
      )
    })))

  it.live("is one of `ports` alone where a registered client did not list its redirect URIs", () =>
    Effect.scoped(Effect.gen(function*() {
      const [used, ours] = [yield* taken(), yield* free]
      assert.strictEqual(portOf(yield* uriOf({ ports: [used, ours] }, registered())), ours)
      const { message } = yield* Effect.flip(uriOf({ ports: [used] }, registered()))
      assert.include(message, `No port for the answer of the browser is free (${used}): listen EADDRINUSE`)
      assert.match(yield* uriOf({}, registered()), /^http:\/\/127\.0\.0\.1:\d+\/callback$/)
    })))

  it.live("fails where no registered redirect URI is on this computer", () =>
    Effect.gen(function*() {
      const uris = ["https://tea.example/cb", "http://127.0.0.1.evil.example/cb", "teahouse://cb", "http://10.0.0.1/cb"]
      const error = yield* Effect.flip(uriOf({}, registered(...uris)))
      assert.include(error.message, "\"https://tea.example/cb\"")
      assert.include(error.message, "Register http://127.0.0.1/callback")
    }))

  it.live("is open on both addresses of `localhost`, or another is chosen", () =>
    Effect.scoped(Effect.gen(function*() {
      const hasIpv6 = yield* Effect.promise(() =>
        new Promise<boolean>((resolve) => {
          const server = createServer().on("error", () => resolve(false)).listen(0, "::1", () => {
            server.close()
            resolve(true)
          })
        })
      )
      const { answer, redirectUri } = yield* start({ ...silent, host: "localhost" })
      assert.match(redirectUri, /^http:\/\/localhost:\d+\/callback$/)
      const port = portOf(redirectUri)
      const open = yield* Effect.promise(() => Promise.all([listens(port, "127.0.0.1"), listens(port, "::1")]))
      assert.deepStrictEqual(open, [true, hasIpv6])
      const { status } = yield* get(`http://127.0.0.1:${port}/callback?code=c1&state=s1`, {
        headers: { host: `localhost:${port}` }
      })
      assert.strictEqual(status, 200)
      yield* Fiber.join(answer)
      if (!hasIpv6) return
      const half = yield* taken("::1")
      const error = yield* Effect.flip(uriOf({}, registered(`http://localhost:${half}/cb`)))
      assert.include(error.message, "EADDRINUSE")
      // The half that was opened is closed again.
      assert.isFalse(yield* Effect.promise(() => listens(half, "127.0.0.1")))
      const chosen = yield* uriOf({ host: "localhost", ports: [half] }, unregistered)
      assert.notStrictEqual(portOf(chosen), half)
    })))

  it.live("belongs to the host that the options prefer, where both are registered", () =>
    Effect.gen(function*() {
      const both = registered("http://127.0.0.1/cb", "http://localhost/cb")
      assert.match(yield* uriOf({}, both), /^http:\/\/127\.0\.0\.1:/)
      assert.match(yield* uriOf({ host: "localhost" }, both), /^http:\/\/localhost:/)
      assert.match(yield* uriOf({}, registered("http://localhost/cb")), /^http:\/\/localhost:/)
    }))
})

describe("the bounds of Loopback", () => {
  for (
    const [options, wait, text] of [[{}, "5 minutes", "5m"], [
      { signInTimeout: "10 seconds" },
      "10 seconds",
      "10s"
    ]] as const
  ) {
    it.effect(`fails when nobody came back within ${wait}`, () =>
      Effect.scoped(Effect.gen(function*() {
        const { answer } = yield* start({ ...silent, ...options })
        const fiber = yield* Effect.forkChild(Effect.flip(Fiber.join(answer)), { startImmediately: true })
        yield* TestClock.adjust(wait)
        const error = yield* Fiber.join(fiber)
        assert.strictEqual(
          error.message,
          `The sign-in at https://tea.example/mcp was not completed in the browser within ${text} (signInTimeout). ` +
            "Start it again."
        )
      })))
  }

  it.live("answers no further request after maxRequests, except the answer", () =>
    Effect.scoped(Effect.gen(function*() {
      const { answer, redirectUri } = yield* lowered({ maxRequests: 2 })
      for (let at = 0; at < 2; at++) assert.strictEqual((yield* get(redirectUri)).status, 404)
      const third = yield* Effect.exit(Effect.tryPromise(() => send(redirectUri)))
      assert.isTrue(Exit.isFailure(third))
      assert.strictEqual((yield* get(`${redirectUri}?code=c1&state=s1`)).status, 200)
      yield* Fiber.join(answer)
    })))

  it.live("refuses a request above maxRequestBytes with 431", () =>
    Effect.scoped(Effect.gen(function*() {
      const { answer, redirectUri } = yield* lowered({ maxRequestBytes: 1_024 })
      const long = yield* get(`${redirectUri}?code=${"c".repeat(2_000)}&state=s1`)
      assert.strictEqual(long.status, 431)
      assert.strictEqual((yield* get(`${redirectUri}?code=${"c".repeat(500)}&state=s1`)).status, 200)
      yield* Fiber.join(answer)
    })))

  it.live("closes the oldest connection at maxConnections, so that held connections do not keep the answer out", () =>
    Effect.scoped(Effect.gen(function*() {
      const { answer, redirectUri } = yield* lowered({ maxConnections: 2 })
      const held: Array<Socket> = []
      const closed: Array<number> = []
      const oldest = Promise.withResolvers<void>()
      for (let at = 0; at < 2; at++) {
        yield* Effect.promise<void>(() =>
          new Promise((done) => {
            const socket = connect(portOf(redirectUri), "127.0.0.1").on("error", () => {})
            socket.on("connect", done).on("close", () => {
              closed.push(at)
              oldest.resolve()
            }).resume()
            held.push(socket)
          })
        )
      }
      assert.strictEqual((yield* get(`${redirectUri}?code=c1&state=s1`)).status, 200)
      yield* Fiber.join(answer)
      yield* Effect.promise(() => oldest.promise)
      assert.deepStrictEqual(closed, [0])
      for (const socket of held) socket.destroy()
    })))
})

describe("the browser of Loopback", () => {
  /** Runs a sign-in to its end, and returns what was printed. */
  const printed = (options: Loopback.Options) =>
    Effect.scoped(Effect.gen(function*() {
      let text = ""
      const print = (line: string) => Effect.sync(() => void (text += line))
      const { answer, redirectUri } = yield* start({ print, ...options })
      yield* get(`${redirectUri}?code=c1&state=s1`)
      yield* Fiber.join(answer)
      return [text, redirectUri] as const
    }))

  it.live("is replaced by a printed URL when none was opened, or on request", () =>
    Effect.gen(function*() {
      for (const open of [false, () => Effect.fail("no browser"), () => Effect.die("broken")] as const) {
        const [text, redirectUri] = yield* printed({ open })
        const port = portOf(redirectUri)
        assert.strictEqual(
          text,
          "To sign in at https://tea.example/mcp, open this URL in a browser on this computer:\n\n" +
            `  ${page.href}\n\n` +
            `A browser on another computer needs a tunnel to this one: ssh -L ${port}:127.0.0.1:${port} <this computer>\n`
        )
      }
    }))

  it.live("leaves nothing printed when it was opened, or when the person came back before it had started", () =>
    Effect.gen(function*() {
      assert.strictEqual((yield* printed({ open: () => Effect.void }))[0], "")
      assert.strictEqual((yield* printed({ open: () => Effect.never }))[0], "")
    }))

  it.live("2026-07-28 · security best practices · opens and prints only http and https URLs", () =>
    Effect.scoped(Effect.gen(function*() {
      const seen: Array<unknown> = []
      const note = (what: unknown) => Effect.sync(() => void seen.push(what))
      const { authorize } = yield* Loopback.make({ open: note, print: note }).open(unregistered)
      const bad = [
        "file:///etc/passwd",
        "javascript:alert(1)",
        "data:text/html,x",
        "ms-msdt:/id",
        "vscode://x",
        "mailto:a@b"
      ]
      for (const url of [...bad, `https://login.example/?${"x".repeat(16_384)}`]) {
        const error = yield* Effect.flip(authorize(new URL(url), "s1"))
        assert.match(error.message, /Only http and https URLs are opened|at most 16384 are opened/)
      }
      assert.deepStrictEqual(seen, [])
    })))
})
