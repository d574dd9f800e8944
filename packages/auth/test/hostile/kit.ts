/** Runs one case of the table: a client with `OAuth` and a real transport against servers that misbehave. */
import * as Grant from "@skein/auth/Grant"
import * as OAuth from "@skein/auth/OAuth"
import { OAuthError } from "@skein/auth/OAuthError"
import { SignIn, SignInError } from "@skein/auth/SignIn"
import * as TokenStore from "@skein/auth/TokenStore"
import * as Client from "@skein/client/Client"
import { ClientError } from "@skein/client/ClientError"
import * as NodeHttp from "@skein/client/NodeHttp"
import type { Endpoint, Rule } from "@skein/testing/AuthorizationScenario"
import * as FaultyAuthorizationServer from "@skein/testing/FaultyAuthorizationServer"
import { assert } from "@effect/vitest"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Redacted from "effect/Redacted"
import * as TestClock from "effect/testing/TestClock"
import { inspect } from "node:util"
import { FlowBounds } from "../../src/client/flow/environment.ts"

/** One row of the table. */
export interface Case {
  readonly title: string
  readonly faults: ReadonlyArray<Rule>
  /** Whether the person has signed in before the faults begin, and the token is refused since. */
  readonly isSignedIn?: boolean
  /** Whether that token remains valid. */
  readonly isTokenValid?: boolean
  readonly tokenLifetimeSeconds?: number
  readonly options?: Omit<OAuth.Options, "grant">
  readonly bounds?: Partial<FlowBounds>
  /** The grant: a person, by default, or a job with a secret, whose issuer may be another one. */
  readonly grant?: "job" | "job of another issuer"
  /** The person's browser brings the answer of the sign-in before this one. */
  readonly isReplayed?: boolean
  /** Time passes while a request to this endpoint has no answer. */
  readonly stallsAt?: Endpoint
  /** The number of calls, one after the other. 1 by default. */
  readonly calls?: number
  /** The time that passes before each call but the first. */
  readonly secondsBetweenCalls?: number
  /** A part of the message. */
  readonly says?: RegExp
  /** How often a used refresh token is used again, also once the server behaves. 0 by default. */
  readonly reused?: number
}

/** A text that the faults put where secrets are. */
export const planted = "pl4nted"

const secret = Redacted.make(`${planted}/+=client-secret`)

const tagOf = (error: unknown): string => {
  const oauth = oauthErrorOf(error)
  if (oauth !== undefined) return oauth.reason._tag
  return error instanceof ClientError ? error.reason._tag : String(error)
}

const oauthErrorOf = (error: unknown): OAuthError | undefined => {
  for (let each = error, depth = 0; depth < 6 && each instanceof Error; depth++, each = each.cause) {
    if (each instanceof OAuthError) return each
  }
  return undefined
}

/** A person who agrees to each sign-in, and a list of the pages they were sent to. */
const person = (isReplaying: () => boolean) => {
  const asked: Array<string> = []
  let previous: URLSearchParams | undefined
  const redirectUri = "http://127.0.0.1:41999/callback"
  const layer = Layer.succeed(SignIn, {
    open: () =>
      Effect.succeed({
        redirectUri,
        authorize: Effect.fnUntraced(function*(url) {
          asked.push(url.href)
          const response = yield* Effect.promise(() => fetch(url, { redirect: "manual" }))
          const location = response.headers.get("location")
          if (location?.startsWith(redirectUri) !== true) {
            return yield* Effect.fail(new SignInError({ message: "Nobody came back" }))
          }
          const answer = isReplaying() && previous !== undefined ? previous : new URL(location).searchParams
          previous = answer
          return answer
        })
      })
  })
  return { asked, layer }
}

/** The endpoints in the order of their first request, with the number of requests where it is not 1. */
const counts = (requests: ReadonlyArray<Endpoint>): string =>
  [...new Set(requests)].map((each) => {
    const count = requests.filter((other) => other === each).length
    return count === 1 ? each : `${count} × ${each}`
  }).join(", ")

/** Waits in real time, without the clock of the test. */
const turn = Effect.promise(() => new Promise<void>((done) => setImmediate(done)))

const grantOf = (kind: Case["grant"], issuer: string): Grant.Grant<SignIn> =>
  kind === undefined
    ? Grant.authorizationCode({ clientName: "Tea House" })
    : Grant.clientCredentials({
      clientId: "job",
      clientSecret: secret,
      issuer: kind === "job" ? issuer : "https://login.example"
    })

/**
 * Runs a case, and checks what holds for all of them: messages are short and printable, nothing secret is printed,
 * the person is sent to the sign-in page only, the third server gets no request, and the next call succeeds
 * once the server behaves. Returns the outcome of the last call, how often the person was asked, and the requests, all
 * of the time in which the server misbehaved.
 */
export const run = (row: Case) => {
  let isHostile = false
  const { asked, layer } = person(() => isHostile && row.isReplayed === true)
  const printed: Array<string> = []
  const print = (value: unknown) => void printed.push(inspect(value, { depth: 20, showHidden: true }), String(value))
  const logger = Logger.make((entry) => {
    print(entry.message)
    printed.push(Cause.pretty(entry.cause))
  })
  const main = Effect.gen(function*() {
    yield* TestClock.setTime(1_700_000_000_000)
    const server = yield* FaultyAuthorizationServer.make({
      faults: [],
      ...(row.tokenLifetimeSeconds === undefined ? {} : { tokenLifetimeSeconds: row.tokenLifetimeSeconds })
    })
    const oauth = yield* Effect.updateService(
      OAuth.make({ grant: grantOf(row.grant, server.issuer), ...row.options }),
      FlowBounds,
      (bounds) => ({ ...bounds, ...row.bounds })
    )
    const call = Effect.scoped(Effect.gen(function*() {
      const client = yield* Client.make(NodeHttp.transport({ url: server.url, credentials: oauth }), {
        revisions: ["2026-07-28"]
      })
      return yield* client.callTool("echo", { key: "tea" })
    }))
    if (row.isSignedIn === true) {
      yield* call
      yield* TestClock.adjust("2 minutes")
      if (row.isTokenValid !== true) yield* server.expireTokens
    }

    const before = { asked: asked.length, requests: server.requests.length }
    yield* server.use(row.faults)
    isHostile = true
    let exit: Exit.Exit<unknown, unknown> = Exit.void
    for (let count = 0; count < (row.calls ?? 1); count++) {
      if (count > 0 && row.secondsBetweenCalls !== undefined) {
        yield* TestClock.adjust(`${row.secondsBetweenCalls} seconds`)
      }
      const fiber = yield* Effect.forkChild(Effect.exit(call))
      if (row.stallsAt !== undefined) {
        const seen = server.requestCount(row.stallsAt)
        while (server.requestCount(row.stallsAt) === seen) yield* turn
        yield* TestClock.adjust("10 seconds")
      }
      exit = yield* Fiber.join(fiber)
      print(exit)
    }
    const error = Exit.isFailure(exit) ? Cause.squash(exit.cause) : undefined
    if (Exit.isFailure(exit)) printed.push(Cause.pretty(exit.cause), JSON.stringify(exit.cause))
    const outcome = error === undefined ? "ok" : tagOf(error)
    const observed = `${outcome} · asked ${asked.length - before.asked} · ${
      counts(server.requests.slice(before.requests))
    }`
    const message = error === undefined ? "" : oauthErrorOf(error)?.message ?? String(error)
    assert.isBelow(message.length, 1_500, "the message is long")
    // oxlint-disable-next-line no-control-regex
    assert.notMatch(message, /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202a-\u202e]/, "control characters")
    if (row.says !== undefined) assert.match(message, row.says)

    // The server behaves from now on. The intervals without a sign-in pass, and the longest `Retry-After`.
    yield* server.use([])
    isHostile = false
    yield* TestClock.adjust("10 minutes")
    const askedBefore = asked.length
    if (row.grant !== "job of another issuer") yield* call
    assert.isAtMost(asked.length - askedBefore, 1, "asked once the server behaves")

    print(yield* oauth.state(server.url))
    const text = printed.join("\n")
    for (const each of [...server.secrets, planted]) assert.notInclude(text, each)
    for (const each of asked) assert.isTrue(each.startsWith(`${server.issuer}/authorize?`), each)
    assert.strictEqual(server.otherRequestCount, 0, "requests to the third server")
    assert.strictEqual(server.reuseCount, row.reused ?? 0, "refresh tokens used twice")
    return observed
  })
  return main.pipe(Effect.provide([layer, TokenStore.layerMemory, Logger.layer([logger])]))
}
