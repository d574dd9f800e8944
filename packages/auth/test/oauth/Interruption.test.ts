/** A request that is interrupted at any point, and the requests after it. */
import type { Challenge } from "@skein/client/Credentials"
import * as Grant from "@skein/auth/Grant"
import * as OAuth from "@skein/auth/OAuth"
import * as Outbound from "@skein/auth/Outbound"
import * as TokenStore from "@skein/auth/TokenStore"
import { assert, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Scheduler from "effect/Scheduler"

const url = new URL("https://tea.example/mcp")
const issuer = "https://login.example"

const documents: Readonly<Record<string, object>> = {
  "https://tea.example/.well-known/oauth-protected-resource/mcp": {
    resource: url.href,
    authorization_servers: [issuer]
  },
  [`${issuer}/.well-known/oauth-authorization-server`]: { issuer, token_endpoint: `${issuer}/token` },
  [`${issuer}/token`]: { access_token: "token", token_type: "Bearer", expires_in: 3600 }
}

const outbound = Outbound.make({
  fetch: (url) =>
    Promise.resolve(Response.json(documents[url] ?? {}, { status: documents[url] === undefined ? 404 : 200 }))
})

const challenge: Challenge = {
  status: 401,
  url,
  server: url,
  wwwAuthenticate: "Bearer",
  authorization: "Bearer refused",
  attempt: 1,
  header: () => undefined
}

const options = {
  grant: Grant.clientCredentials({ clientId: "job", clientSecret: Redacted.make("secret"), issuer }),
  outbound
}

/** An authorization server that rotates refresh tokens, and counts those that are used twice. */
const makeRotation = () => {
  const state = { issued: 0, reused: 0 }
  const fetch: Outbound.Fetch = (url, { body = "" }) => {
    if (url !== `${issuer}/token`) return outbound.fetch(url, {} as never)
    const used = new URLSearchParams(body).get("refresh_token")
    if (used !== null && used !== `refresh-${state.issued}`) {
      state.reused++
      return Promise.resolve(Response.json({ error: "invalid_grant" }, { status: 400 }))
    }
    const n = ++state.issued
    const tokens = { access_token: `token-${n}`, refresh_token: `refresh-${n}`, token_type: "Bearer", expires_in: 3600 }
    return Promise.resolve(Response.json(tokens))
  }
  return { outbound: Outbound.make({ fetch }), state }
}

it.live("a refresh that is interrupted at any point loses no refresh token, and uses none twice", () =>
  Effect.gen(function*() {
    let steps = 0
    for (let hasEnded = false; !hasEnded; steps++) {
      const { outbound, state } = makeRotation()
      const store = yield* TokenStore.makeMemory()
      const make = Effect.provideService(
        OAuth.make({ ...options, outbound, signInInterval: 0 }),
        TokenStore.TokenStore,
        store
      )
      const oauth = yield* make
      assert.isTrue(yield* oauth.refused(challenge))
      const expired = { ...challenge, authorization: "Bearer token-1" }
      const first = yield* Effect.forkChild(
        Effect.provideService(oauth.refused(expired), Scheduler.MaxOpsBeforeYield, 4)
      )
      for (let n = 0; n < steps; n++) yield* Effect.yieldNow
      hasEnded = first.pollUnsafe() !== undefined
      yield* Fiber.interrupt(first)
      // Another process that shares the store goes on from what the first one has stored.
      const other = yield* make
      assert.isTrue(yield* other.refused(expired))
      assert.deepEqual(state, { issued: 2, reused: 0 }, `after ${steps} steps`)
    }
    assert.isAbove(steps, 20)
  }))

it.live("a refused request that is interrupted at any point does not block the next one", () =>
  Effect.gen(function*() {
    for (const operations of [3, 4]) {
      let steps = 0
      for (let hasEnded = false; !hasEnded; steps++) {
        const store = yield* TokenStore.makeMemory()
        const oauth = yield* Effect.provideService(OAuth.make(options), TokenStore.TokenStore, store)
        const first = yield* Effect.forkChild(
          // A fiber that yields after some operations can be interrupted there.
          Effect.provideService(oauth.refused(challenge), Scheduler.MaxOpsBeforeYield, operations)
        )
        for (let n = 0; n < steps; n++) yield* Effect.yieldNow
        hasEnded = first.pollUnsafe() !== undefined
        yield* Fiber.interrupt(first)
        const next = yield* Effect.timeoutOption(oauth.refused(challenge), "20 seconds")
        assert.deepEqual(next, Option.some(true), `after ${steps} steps of ${operations} operations`)
      }
      assert.isAbove(steps, 20)
    }
  }))
