/**
 * `Loopback` with Chromium. Needs Debian's package `chromium`, or the executable in `CHROMIUM`. Without it the tests are
 * skipped, or fail if `CI` is set.
 */
import { assert, describe, it } from "@effect/vitest"
import * as DevServer from "@skein/auth/DevServer"
import * as Loopback from "@skein/auth/Loopback"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { spawn } from "node:child_process"
import { once } from "node:events"
import { join } from "node:path"
import * as Chromium from "../../../client/test/browser/chromium.ts"
import { directory, page, unregistered } from "./kit.ts"

const chromium = Chromium.find()

/** Visits a URL, and returns the page as it is after its scripts, and what the console of the browser reported. */
const visit = (chromium: string, url: string, ...flags: ReadonlyArray<string>) =>
  Effect.gen(function*() {
    const profile = join(yield* directory, "profile")
    const all = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"]
    const args = [...all, ...flags, "--enable-logging=stderr", `--user-data-dir=${profile}`, "--dump-dom", url]
    return yield* Effect.promise(async () => {
      const child = spawn(chromium, args, { stdio: ["ignore", "pipe", "pipe"] })
      let [dom, log] = ["", ""]
      child.stdout.setEncoding("utf8").on("data", (text: string) => void (dom += text))
      child.stderr.setEncoding("utf8").on("data", (text: string) => void (log += text))
      await once(child, "close")
      return { dom, console: log.split("\n").filter((line) => line.includes("CONSOLE")) }
    })
  })

if (chromium === undefined) {
  const name = "a browser is needed: install Debian's `chromium`, or set CHROMIUM to one"
  it.skipIf((process.env["CI"] ?? "") === "")(name, () => assert.fail("there is no Chromium in the PATH"))
} else {
  describe("Loopback in Chromium", () => {
    it.live(
      "shows a page that violates no policy of its own, without scripts, and receives the answer",
      () =>
        Effect.gen(function*() {
          for (
            const [answer, title] of [["code=c1", "Sign-in received"], ["error=access_denied", "You are not signed in"]]
          ) {
            const { authorize, redirectUri } = yield* Loopback.make({ open: () => Effect.void }).open(unregistered)
            const answered = yield* Effect.forkScoped(authorize(page, "s1"), { startImmediately: true })
            const { console, dom } = yield* visit(chromium, `${redirectUri}?${answer}&state=s1`)
            assert.include(dom, `<h1>${title}</h1>`)
            assert.include(dom, "You may close this page.")
            assert.deepStrictEqual(console, [])
            assert.strictEqual((yield* Fiber.join(answered)).get("state"), "s1")
          }
        }),
      60_000
    )

    it.live("refuses a page of another name that leads to this computer (DNS rebinding)", () =>
      Effect.gen(function*() {
        const { authorize, redirectUri } = yield* Loopback.make({ open: () => Effect.void }).open(unregistered)
        const answered = yield* Effect.forkScoped(authorize(page, "s1"), { startImmediately: true })
        const { port } = new URL(redirectUri)
        const rebound = `http://evil.example:${port}/callback?code=planted&state=s1`
        const { dom } = yield* visit(chromium, rebound, "--host-resolver-rules=MAP evil.example 127.0.0.1")
        assert.include(dom, "No sign-in uses this page")
        assert.isUndefined(answered.pollUnsafe())
      }), 60_000)

    it.live("signs in at an authorization server", () =>
      Effect.gen(function*() {
        const { issuer } = yield* DevServer.make({
          signInAs: "ada",
          clients: [{ clientId: "desk", redirectUris: ["http://127.0.0.1/callback"] }]
        })
        let shown = ""
        const open = (url: URL) =>
          Effect.map(Effect.scoped(visit(chromium, url.href)), ({ dom }) => {
            shown = dom
          })
        const { authorize, redirectUri } = yield* Loopback.make({ open }).open(unregistered)
        const url = new URL(`${issuer}/auth`)
        const challenge = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
        const parameters = {
          client_id: "desk",
          response_type: "code",
          redirect_uri: redirectUri,
          scope: "mcp:read",
          resource: "http://127.0.0.1:9/mcp",
          code_challenge: challenge,
          code_challenge_method: "S256",
          state: "s1"
        }
        for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value)
        const answer = yield* authorize(url, "s1")
        assert.strictEqual(answer.get("iss"), issuer)
        assert.isNotNull(answer.get("code"), shown)
      }), 60_000)
  })
}
