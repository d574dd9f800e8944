/** A sign-in whose answer a person pastes. */
import { assert, describe, it } from "@effect/vitest"
import * as PasteSignIn from "@skein/auth/PasteSignIn"
import type * as SignIn from "@skein/auth/SignIn"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Schema from "effect/Schema"
import * as TestClock from "effect/testing/TestClock"
import { spawn } from "node:child_process"
import { once } from "node:events"
import { join } from "node:path"
import { parse } from "../../src/client/node/pastedAnswer.ts"
import { page, registered, unregistered } from "./kit.ts"
import { SignInBounds } from "../../src/client/node/bounds.ts"

const redirectUri = "http://127.0.0.1:49817/callback"

/** A person who pastes these texts, and then ends the input. */
const person = (...texts: ReadonlyArray<string>) => {
  const seen: Array<string> = []
  const left = [...texts]
  const terminal: PasteSignIn.Terminal = {
    writeLine: (line) => Effect.sync(() => void seen.push(line)),
    readLine: () => Effect.sync(() => left.shift())
  }
  return { terminal, seen }
}

const signIn = (options: PasteSignIn.Options, opening: SignIn.OpenOptions = unregistered, url: URL = page) =>
  Effect.scoped(Effect.gen(function*() {
    const { authorize, redirectUri } = yield* PasteSignIn.make(options).open(opening)
    return { redirectUri, params: yield* authorize(url, "s1") }
  }))

describe("PasteSignIn", () => {
  it.effect("shows the URL, explains each text that is not the answer, and asks again", () =>
    Effect.gen(function*() {
      const { seen, terminal } = person(
        "",
        page.href,
        `${redirectUri}?code=planted&state=s2`,
        "planted",
        `${redirectUri}?code=c1&state=s1&iss=https://login.example`
      )
      const { params } = yield* signIn({ terminal })
      assert.deepStrictEqual([...params], [["code", "c1"], ["state", "s1"], ["iss", "https://login.example"]])
      const [invitation, ...problems] = seen
      assert.include(invitation!, "To sign in at https://tea.example/mcp, open this URL in a browser on any computer:")
      assert.include(invitation!, `\n\n  ${page.href}\n\n`)
      assert.include(invitation!, `an address that begins with ${redirectUri} `)
      assert.deepStrictEqual(problems.map((text) => text.split(".")[0]), [
        "Paste the whole address that the browser went to after the sign-in",
        "This is the address of the sign-in page",
        "This address belongs to another sign-in, perhaps to an earlier one",
        "A code without its state is not enough"
      ])
      assert.notInclude(problems.join("\n"), "planted")
    }))

  it.effect("asks on a terminal of async functions, and aborts the signal of a question that is no longer open", () =>
    Effect.gen(function*() {
      const lines: Array<string> = []
      const writeLine = async (line: string) => void lines.push(line)
      const answer = `${redirectUri}?code=c1&state=s1`
      const { params } = yield* signIn({ terminal: { writeLine, readLine: async () => answer } })
      assert.strictEqual(params.get("code"), "c1")
      assert.strictEqual(lines.length, 1)
      let asked: AbortSignal | undefined
      const readLine = (_: string, signal: AbortSignal) => {
        asked = signal
        return new Promise<undefined>(() => {})
      }
      const waiting = yield* Effect.forkChild(Effect.flip(signIn({ terminal: { writeLine, readLine } })), {
        startImmediately: true
      })
      yield* Effect.promise(async () => {
        while (asked === undefined) await new Promise(setImmediate)
      })
      yield* TestClock.adjust("5 minutes")
      assert.include((yield* Fiber.join(waiting)).message, "was not pasted within 5m")
      assert.isTrue(asked!.aborted)
    }))

  it.effect("fails when the terminal does", () =>
    Effect.gen(function*() {
      const writeLine = () => {}
      const readLine = () => Promise.reject(new Error("closed"))
      const error = yield* Effect.flip(signIn({ terminal: { writeLine, readLine } }))
      assert.include(error.message, "The terminal for the answer of the sign-in failed.")
    }))

  it.effect("returns an answer with an error as an answer", () =>
    Effect.gen(function*() {
      const { params } = yield* signIn(person(`${redirectUri}?error=access_denied&state=s1`))
      assert.strictEqual(params.get("error"), "access_denied")
    }))

  it.effect("fails when the input ends, after ten texts, and for a URL that is not http or https", () =>
    Effect.gen(function*() {
      const ended = yield* Effect.flip(signIn(person("x")))
      assert.include(ended.message, "The input ended")
      const many = yield* Effect.flip(signIn(person(...Array.from({ length: 20 }, () => "x"))))
      assert.include(many.message, "not among 10 pasted texts")
      const two = yield* Effect.flip(
        Effect.updateService(signIn(person("x", "y", "z")), SignInBounds, (bounds) => ({ ...bounds, maxPastes: 2 }))
      )
      assert.include(two.message, "not among 2 pasted texts")
      const { seen, terminal } = person()
      const bad = yield* Effect.flip(signIn({ terminal }, unregistered, new URL("file:///etc/passwd")))
      assert.include(bad.message, "Only http and https URLs")
      assert.deepStrictEqual(seen, [])
    }))

  for (const [options, wait] of [[{}, "5 minutes"], [{ signInTimeout: "20 seconds" }, "20 seconds"]] as const) {
    it.effect(`fails after ${wait} without an answer`, () =>
      Effect.gen(function*() {
        const terminal: PasteSignIn.Terminal = { writeLine: () => Effect.void, readLine: () => Effect.never }
        const fiber = yield* Effect.forkChild(Effect.flip(signIn({ ...options, terminal })), { startImmediately: true })
        yield* TestClock.adjust(wait)
        assert.include((yield* Fiber.join(fiber)).message, "was not pasted within")
      }))
  }

  it.effect("chooses a redirect URI that the client is registered with", () =>
    Effect.gen(function*() {
      const uriOf = (options: PasteSignIn.Options, opening: SignIn.OpenOptions) =>
        Effect.scoped(Effect.map(PasteSignIn.make(options).open(opening), ({ redirectUri }) => redirectUri))
      const own = "http://127.0.0.1:8000/cb"
      assert.strictEqual(yield* uriOf({}, unregistered), redirectUri)
      assert.strictEqual(yield* uriOf({}, { ...unregistered, redirectUris: [own] }), own)
      assert.strictEqual(yield* uriOf({ redirectUri: own }, { ...unregistered, redirectUris: [redirectUri] }), own)
      assert.strictEqual(yield* uriOf({}, registered("https://tea.example/cb", own)), own)
      assert.strictEqual(yield* uriOf({}, registered("https://tea.example/cb")), "https://tea.example/cb")
      assert.strictEqual(yield* uriOf({ redirectUri: own }, registered("http://127.0.0.1/cb")), own)
      assert.strictEqual(yield* uriOf({ redirectUri: own }, registered()), own)
      const error = yield* Effect.flip(uriOf({ redirectUri: own }, registered("https://tea.example/cb")))
      assert.include(error.message, `${JSON.stringify(own)}, but with "https://tea.example/cb"`)
    }))

  it.live("writes nothing to stdout and reads nothing from stdin when stdin is not a terminal", () =>
    Effect.gen(function*() {
      const program = join(import.meta.dirname, "pasting.ts")
      const child = spawn(process.execPath, ["--conditions=@skein/source", program], { stdio: "pipe" })
      let [out, err] = ["", ""]
      child.stdout.setEncoding("utf8").on("data", (text: string) => void (out += text))
      child.stderr.setEncoding("utf8").on("data", (text: string) => void (err += text))
      child.stdin.on("error", () => {})
      child.stdin.write(`${redirectUri}?code=planted&state=s1\n`)
      const [code] = yield* Effect.promise(() => once(child, "close"))
      assert.deepStrictEqual([code, out], [0, ""])
      assert.include(err, page.href)
      assert.include(err, "SignInError: There is no terminal to paste the answer of a sign-in on")
      assert.notInclude(err, "planted")
    }))
})

describe("a pasted text", () => {
  const wanted = { url: page, redirectUri, state: "s1" }
  const read = (text: string, more: Partial<typeof wanted> = {}) => {
    const answer = parse(text, { ...wanted, ...more })
    return typeof answer === "string" ? answer : Object.fromEntries(answer)
  }
  const good = { code: "c1", state: "s1" }

  it("is the whole address, its query, or the code and the state", () => {
    const texts = [
      `${redirectUri}?code=c1&state=s1`,
      `  <${redirectUri}?code=c1&state=s1>\r\n`,
      `"${redirectUri}?state=s1&code=c1#"`,
      `\u001b[200~${redirectUri}?code=c1&state=s1\u001b[201~`,
      "HTTP://127.0.0.1:49817/callback?code=c1&state=s1",
      "?code=c1&state=s1",
      "code=c1&state=s1",
      "c1 s1",
      "c1#s1"
    ]
    for (const text of texts) assert.deepStrictEqual(read(text), good, text)
    assert.deepStrictEqual(read("teahouse://cb?code=c1&state=s1", { redirectUri: "teahouse://cb" }), good)
    assert.deepStrictEqual(read("http://127.0.0.1:80/?code=c1&state=s1", { redirectUri: "http://127.0.0.1" }), good)
  })

  it("is explained if it is something else", () => {
    const explained: ReadonlyArray<readonly [text: string, why: RegExp]> = [
      ["   ", /^Paste the whole address/],
      ["c1", /^A code without its state/],
      ["what is this", /^This is not an address/],
      ["http://", /^This is not a valid address/],
      [`${page.href}`, /^This is the address of the sign-in page/],
      ["https://evil.example/callback?code=planted&state=s1", /begins with https:\/\/evil\.example\/callback\./],
      [`${redirectUri}/more?code=planted&state=s1`, /^The address must begin with/],
      [`${redirectUri}?code=planted`, /^The text has no state/],
      [`${redirectUri}?code=planted&state=s1&state=s1`, /^The text has no state/],
      [`${redirectUri}?state=s1`, /^The text has no code/],
      [`${redirectUri}?code=planted&state=S1`, /^This address belongs to another sign-in/],
      [`${redirectUri}?code=${"planted".repeat(3_000)}&state=s1`, /more than 16384 characters/]
    ]
    for (const [text, why] of explained) {
      const answer = read(text)
      assert.isString(answer, text.slice(0, 80))
      assert.match(answer as string, why)
      assert.notInclude(answer as string, "planted")
    }
  })

  it.prop("never fails, and is an answer only with the state", { text: Schema.String }, ({ text }) => {
    for (const each of [text, `${redirectUri}?${text}`, `http://${text}`, `code=${text}`]) {
      const answer = parse(each, wanted)
      assert.isTrue(typeof answer === "string" || answer.get("state") === "s1")
    }
  })
})
