/** Signs in at a protected server with `skein` as a process, real sockets, and a browser that is a program. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs"
import { connect } from "node:net"
import { join } from "node:path"
import { allOutput, node, person, program, protectedServer, skein, start } from "./signInKit.ts"
import { freePort } from "../../../scripts/freePort.ts"

/** Waits until a value is there. */
const eventually = <A>(read: () => A | undefined | null | false) =>
  Effect.repeat(Effect.sync(read), {
    until: (value) => value !== undefined && value !== null && value !== false,
    schedule: Schedule.spaced("20 millis")
  })

/** Visits a sign-in page up to the redirect to this computer, and returns its address. */
const answerOf = async (page: string): Promise<string> => {
  const cookies = new Map<string, string>()
  let url = new URL(page)
  const { searchParams } = url
  while (true) {
    const cookie = Array.from(cookies, ([name, value]) => `${name}=${value}`).join("; ")
    const answer = await fetch(url, { redirect: "manual", headers: { cookie } })
    for (const line of answer.headers.getSetCookie()) {
      const [, name = "", value = ""] = /^([^=]+)=([^;]*)/.exec(line) ?? []
      cookies.set(name, value)
    }
    url = new URL(answer.headers.get("location") ?? assert.fail(await answer.text()), url)
    if (url.href.startsWith(searchParams.get("redirect_uri")!)) return url.href
  }
}

const isOpen = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1")
    socket.on("error", () => resolve(false))
    socket.on("connect", () => {
      socket.destroy()
      resolve(true)
    })
  })

describe("skein login", () => {
  it.live("signs in, so that call works without a flag, until logout", () =>
    Effect.gen(function*() {
      const { counts, issuer, url } = yield* protectedServer()
      const { env, folder, visits } = yield* person()
      const advice = `Sign in with: skein login ${url}\n`
      assert.deepStrictEqual(yield* skein(env, "whoami", url), {
        code: 1,
        out: "",
        err: `skein: Not signed in at ${url}. ${advice}`
      })
      assert.deepStrictEqual(yield* skein(env, "call", url, "brew"), {
        code: 3,
        out: "",
        err: `skein: The server answered with status 401. ${advice}`
      })
      const login = yield* skein(env, "login", url)
      assert.strictEqual(login.err, `Opening ${new URL(issuer).host} in the browser to sign in. Ctrl-C cancels.\n`)
      const scopes = "mcp:read mcp:write"
      const shown = new RegExp(
        `^Signed in at ${url}\n  Issuer   ${issuer}\n  Person   not known \\(the issuer may return it for the scope openid\\)\n  Scopes   ${scopes}\n` +
          "  Expires  \\d{4}-\\d\\d-\\d\\dT[\\d:]{8}Z, in \\d+ minutes, renewed automatically\n" +
          "  Client   [\\w-]+ \\(registered automatically\\)\n$"
      )
      assert.match(login.out, shown)
      assert.strictEqual(login.code, 0)
      const who = yield* skein(env, "whoami", url)
      assert.match(who.out, shown)
      assert.deepStrictEqual([who.code, who.err], [0, ""])
      assert.deepStrictEqual(yield* skein(env, "call", url, "brew"), { code: 0, out: "Green tea\n", err: "" })
      const json = JSON.parse((yield* skein(env, "whoami", "--json", url)).out)
      assert.deepInclude(json, { url, isSignedIn: true, issuer, scopes: scopes.split(" "), isRenewable: true })
      // Files that only this user can read.
      const tokens = join(folder, "skein", "tokens")
      assert.strictEqual(statSync(tokens).mode & 0o777, 0o700)
      for (const file of readdirSync(tokens)) assert.strictEqual(statSync(join(tokens, file)).mode & 0o777, 0o600)
      assert.deepStrictEqual((yield* skein(env, "logout", url)).out, `Signed out of ${url}\n`)
      assert.isAbove((yield* Effect.promise(() => counts())).revocations, 0)
      assert.deepStrictEqual(
        (yield* skein(env, "logout", "--json", url)).out,
        `{\n  "url": "${url}",\n  "wasSignedIn": false\n}\n`
      )
      assert.strictEqual((yield* skein(env, "whoami", "--json", url)).code, 1)
      assert.strictEqual(visits().length, 1)
    }), 60_000)

  it.live(
    "names metadata of another host, and uses it with --resource-metadata, also to renew tokens",
    () =>
      Effect.gen(function*() {
        const { counts, metadata, url } = yield* protectedServer({
          metadataElsewhere: true,
          accessTokenLifetime: "3 seconds"
        })
        for (const command of [["login", url], ["call", "--login", url, "brew"]]) {
          const { env, visits } = yield* person()
          const refused = yield* skein(env, ...command)
          assert.notStrictEqual(refused.code, 0)
          assert.include(
            refused.err,
            `The server names its metadata at "${metadata}", which is of another origin and is not read. If that metadata is ` +
              "to be trusted, set its URL as resourceMetadata of the server in the option servers, or in skein with " +
              "--resource-metadata"
          )
          assert.deepStrictEqual(visits(), [])
          const [name = "", ...rest] = command
          const accepted = yield* skein(env, name, "--resource-metadata", metadata!, ...rest)
          assert.deepStrictEqual([accepted.code, visits().length], [0, 1], accepted.err)
          const before = (yield* Effect.promise(() => counts())).refreshes
          const isRenewed = Effect.gen(function*() {
            assert.deepStrictEqual(yield* skein(env, "call", url, "brew"), { code: 0, out: "Green tea\n", err: "" })
            return (yield* Effect.promise(() => counts())).refreshes > before
          })
          yield* Effect.repeat(isRenewed, { until: (renewed) => renewed })
          assert.strictEqual(visits().length, 1)
        }
        const { env } = yield* person()
        const odd = yield* skein(env, "login", "--resource-metadata", "http://tea.example/metadata", url)
        assert.deepStrictEqual([odd.code, /resourceMetadata is not an https URL/.test(odd.err)], [4, true], odd.err)
        const none = yield* skein(env, "login", "--resource-metadata", "metadata", url)
        assert.deepStrictEqual([none.code, /--resource-metadata needs a URL: "metadata"/.test(none.err)], [2, true])
      }),
    120_000
  )

  it.live("asks once for several processes that begin a sign-in together", () =>
    Effect.gen(function*() {
      const { counts, url } = yield* protectedServer()
      for (const args of [["call", "--login", url, "brew"], ["login", url]]) {
        const { env, visits } = yield* person()
        const before = (yield* Effect.promise(() => counts())).authorizations
        const runs = yield* Effect.all(Array.from({ length: 4 }, () => skein(env, ...args)), {
          concurrency: "unbounded"
        })
        assert.deepStrictEqual(runs.map(({ code }) => code), [0, 0, 0, 0], runs.map(({ err }) => err).join(""))
        assert.strictEqual(visits().length, 1)
        assert.strictEqual((yield* Effect.promise(() => counts())).authorizations - before, 1)
      }
    }), 60_000)

  it.live(
    "renews a token that has expired without asking, and says so when the grant has ended",
    () =>
      Effect.gen(function*() {
        // Long enough that a loaded machine uses a token before it expires: its lifetime is counted in whole seconds.
        const { counts, url } = yield* protectedServer({ accessTokenLifetime: "5 seconds" })
        const { env, visits } = yield* person()
        assert.strictEqual((yield* skein(env, "login", url)).code, 0)
        yield* Effect.sleep("5100 millis")
        assert.deepStrictEqual(yield* skein(env, "call", url, "brew"), { code: 0, out: "Green tea\n", err: "" })
        assert.isAbove((yield* Effect.promise(() => counts())).refreshes, 0)
        yield* Effect.promise(() => counts("revoke"))
        yield* Effect.sleep("5100 millis")
        const ended = yield* skein(env, "call", url, "brew")
        assert.deepStrictEqual([ended.code, ended.out], [3, ""])
        assert.include(ended.err, `Sign in with: skein login ${url}\n`)
        assert.strictEqual(visits().length, 1)
      }),
    60_000
  )

  it.live(
    "prints the URL to stderr when there is no browser, and with --no-browser, and opens the port of --port",
    () =>
      Effect.gen(function*() {
        const { url } = yield* protectedServer()
        const port = yield* Effect.promise(freePort)
        for (const [who, args] of [["no browser", []], ["allow", ["--no-browser", "--port", String(port)]]] as const) {
          const { env, visits } = yield* person(who)
          const run = start(env, node[0], ...node.slice(1), program, "login", ...args, "--json", url)
          const page = (yield* eventually(() => /^ {2}(http:\S+)$/m.exec(run.err())?.[1])) as string
          assert.include(run.err(), `To sign in at ${url}, open this URL in a browser on this computer:`)
          const answer = yield* Effect.promise(() => answerOf(page))
          if (args.length > 0) assert.strictEqual(new URL(answer).port, String(port))
          yield* Effect.promise(() => fetch(answer))
          const { code, out } = yield* Effect.promise(() => run.ended)
          assert.deepStrictEqual([code, JSON.parse(out).isSignedIn], [0, true])
          assert.deepStrictEqual(visits(), [])
        }
      }),
    60_000
  )

  it.live("fails when the port of --port is taken", () =>
    Effect.gen(function*() {
      const { url } = yield* protectedServer()
      const { env, visits } = yield* person()
      const { code, err } = yield* skein(env, "login", "--port", new URL(url).port, url)
      assert.strictEqual(code, 3)
      assert.include(err, `(${new URL(url).port}): listen EADDRINUSE`)
      assert.deepStrictEqual(visits(), [])
    }), 60_000)

  it.live(
    "signs in at a server of a configuration, and adds nothing to headers that authorize",
    () =>
      Effect.gen(function*() {
        const { url } = yield* protectedServer()
        const { env, folder, visits } = yield* person()
        const file = join(folder, "mcp.json")
        const headers = { authorization: "Bearer planted" }
        writeFileSync(file, JSON.stringify({ mcpServers: { tea: { url }, keyed: { url, headers } } }))
        const call = (...args: ReadonlyArray<string>) => skein(env, "call", "--config", file, ...args, "brew")
        const advice = `. Sign in with: skein login ${url}`
        assert.strictEqual(
          (yield* call("--server", "tea")).err,
          `skein: The server answered with status 401${advice}\n`
        )
        assert.strictEqual((yield* call("--server", "tea", "--login")).out, "Green tea\n")
        assert.strictEqual((yield* call("--server", "tea")).out, "Green tea\n")
        assert.strictEqual((yield* call("--server", "keyed")).err, "skein: The server answered with status 401\n")
        assert.strictEqual(visits().length, 1)
      }),
    60_000
  )

  it.live("exits with 4 and says what to do where no client can be registered", () =>
    Effect.gen(function*() {
      const { issuer, url } = yield* protectedServer({ dynamicRegistration: false })
      const { env, visits } = yield* person()
      const { code, err } = yield* skein(env, "login", url)
      assert.strictEqual(code, 4)
      assert.include(err, `skein: Skein could not be registered with ${issuer}`)
      assert.include(err, `pass it with --client-id <id> --issuer ${issuer}`)
      assert.deepStrictEqual(visits(), [])
    }), 60_000)

  it.live("shows the person who signed in, if the issuer tells", () =>
    Effect.gen(function*() {
      const { url } = yield* protectedServer()
      const { env } = yield* person()
      const { out } = yield* skein(env, "login", "--scope", "openid mcp:read", url)
      assert.include(out, "\n  Person   ada@example.com (ada)\n")
      const { person: who } = JSON.parse((yield* skein(env, "whoami", "--json", url)).out)
      assert.deepStrictEqual(who, { subject: "ada", name: "ada@example.com" })
    }), 60_000)

  it.live("leaves the resource out with --omit-resource", () =>
    Effect.gen(function*() {
      const { url } = yield* protectedServer()
      const { env, visits } = yield* person("deny")
      yield* skein(env, "login", url)
      yield* skein(env, "login", "--omit-resource", url)
      assert.deepStrictEqual(visits().map(({ searchParams }) => searchParams.get("resource")), [url, null])
    }), 60_000)

  it.live("call --login does not count the time that the person takes as --timeout", () =>
    Effect.gen(function*() {
      const { url } = yield* protectedServer()
      const { env } = yield* person("slow")
      const { code, out } = yield* skein(env, "call", "--login", "--timeout", "5", url, "brew")
      assert.deepStrictEqual([code, out], [0, "Green tea\n"])
    }), 60_000)

  it.live("exits with 4 when the person refuses", () =>
    Effect.gen(function*() {
      const { url } = yield* protectedServer()
      const { env } = yield* person("deny")
      const { code, err, out } = yield* skein(env, "login", url)
      assert.deepStrictEqual([code, out], [4, ""])
      assert.match(err, /skein: .* denied the sign-in: "access_denied"/)
      assert.include(err, "Sign in again")
    }), 60_000)

  it.live("exits with 130 and closes its port when it is interrupted", () =>
    Effect.gen(function*() {
      const { url } = yield* protectedServer()
      const { env, visits } = yield* person("nothing")
      const run = start(env, node[0], ...node.slice(1), program, "login", url)
      const [page] = (yield* eventually(() => visits().length > 0 && visits())) as ReadonlyArray<URL>
      const port = Number(new URL(page!.searchParams.get("redirect_uri")!).port)
      assert.isTrue(yield* Effect.promise(() => isOpen(port)))
      run.child.kill("SIGINT")
      assert.strictEqual((yield* Effect.promise(() => run.ended)).code, 130)
      assert.isFalse(yield* Effect.promise(() => isOpen(port)))
      assert.strictEqual((yield* skein(env, "whoami", url)).code, 1)
    }), 60_000)

  it.live(
    "uses a client that was registered by hand, at its issuer only, with its secret from the environment",
    () =>
      Effect.gen(function*() {
        const secret = "planted-secret"
        const clients = [{ clientId: "desk", clientSecret: secret, redirectUris: ["http://127.0.0.1/callback"] }]
        const { counts, issuer, url } = yield* protectedServer({ clients })
        const { env, folder } = yield* person()
        const own = { ...env, SKEIN_CLIENT_SECRET: secret }
        const other = yield* skein(own, "login", "--client-id", "desk", "--issuer", "https://login.example", url)
        assert.strictEqual(other.code, 4)
        assert.include(other.err, "https://login.example")
        const { code, err, out } = yield* skein(own, "login", "--client-id", "desk", "--issuer", issuer, url)
        assert.strictEqual(code, 0, err)
        assert.include(out, "  Client   desk (registered by hand)\n")
        assert.strictEqual((yield* Effect.promise(() => counts())).registrations, 0)
        assert.strictEqual((yield* skein(env, "call", url, "brew")).out, "Green tea\n")
        const tokens = join(folder, "skein", "tokens")
        for (const file of readdirSync(tokens)) assert.notInclude(readFileSync(join(tokens, file), "utf8"), secret)
        assert.notInclude(allOutput(), secret)
      }),
    60_000
  )

  // The program `script` of util-linux gives a process a terminal.
  it.live.skipIf(!existsSync("/usr/bin/script"))(
    "--paste explains a wrong address on the terminal, and signs in with the right one",
    () =>
      Effect.gen(function*() {
        const { url } = yield* protectedServer()
        const { env } = yield* person()
        const line = [...node, program, "login", "--paste", url].map((word) => `'${word}'`).join(" ")
        const run = start(env, "/usr/bin/script", "-qefc", line, "/dev/null")
        const page = (yield* eventually(() => /^ {2}(http:\S+)\r?$/m.exec(run.out())?.[1])) as string
        yield* eventually(() => run.out().includes("Address: "))
        run.child.stdin!.write(`${page}\r`)
        yield* eventually(() => run.out().includes("This is the address of the sign-in page."))
        run.child.stdin!.write(`${yield* Effect.promise(() => answerOf(page))}\r`)
        const { code, out } = yield* Effect.promise(() => run.ended)
        assert.strictEqual(code, 0, out)
        assert.include(out, `Signed in at ${url}`)
      }),
    60_000
  )

  it.live("fails where --paste has no terminal, and where nothing listens", () =>
    Effect.gen(function*() {
      const { env } = yield* person()
      const url = `http://127.0.0.1:${yield* Effect.promise(freePort)}/mcp`
      const paste = yield* skein(env, "login", "--paste", url)
      assert.deepStrictEqual(paste, { code: 2, out: "", err: "skein: --paste needs a terminal to paste on\n" })
      const gone = yield* skein(env, "login", url)
      assert.deepStrictEqual([gone.code, gone.out], [3, ""])
      assert.include(gone.err, `"${new URL(url).origin}/.well-known/`)
      assert.include(gone.err, "cannot be reached (ECONNREFUSED). Check the URL, and whether the server runs\n")
      const insecure = yield* skein(env, "login", "http://tea.invalid/mcp")
      assert.strictEqual(insecure.code, 4)
      assert.include(insecure.err, "Nobody is signed in at \"http://tea.invalid/mcp\"")
    }), 60_000)

  it.live("says which URL a server has, if the given one leads to no server", () =>
    Effect.gen(function*() {
      const { url } = yield* protectedServer()
      const { env } = yield* person()
      const { code, err } = yield* skein(env, "login", `${url}s`)
      assert.strictEqual(code, 4)
      assert.include(err, `describes "${url}", not "${url}s". It is not used. If you mean that server, use its URL\n`)
    }), 60_000)

  it.live("writes no token, code or verifier to its output", () =>
    Effect.sync(() => {
      // A JSON Web Token begins so, up to its first dot: the three letters alone are in some states by chance.
      assert.notMatch(allOutput(), /eyJ[\w-]{10,}\.|[?&]code=|code_verifier/)
      assert.isNotEmpty(allOutput())
    }))
})
