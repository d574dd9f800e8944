/** Nothing secret is printed: planted secrets are searched in errors, logs, spans, and inspected values. */
import * as Grant from "@skein/auth/Grant"
import * as OAuth from "@skein/auth/OAuth"
import * as TokenStore from "@skein/auth/TokenStore"
import { assert, describe, it } from "@effect/vitest"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Redacted from "effect/Redacted"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/testing/TestClock"
import * as Tracer from "effect/Tracer"
import { inspect } from "node:util"
import { person, request, type Servers, start } from "./scriptedServers.ts"

const planted = "pl4nted"

/** Everything that a program could print of an effect and of what it logs and traces. */
const printed = (effect: Effect.Effect<unknown, unknown>) =>
  Effect.gen(function*() {
    const lines: Array<string> = []
    const all = (value: unknown) => void lines.push(inspect(value, { depth: 20, showHidden: true }), String(value))
    const logger = Logger.make((options) => {
      all(options.message)
      lines.push(Cause.pretty(options.cause), Logger.formatJson.log(options))
    })
    const spans: Array<Tracer.Span> = []
    const tracer = Tracer.make({
      span: (options) => {
        const span = new Tracer.NativeSpan(options)
        spans.push(span)
        return span
      }
    })
    const exit = yield* Effect.exit(effect).pipe(
      Effect.provide(Layer.merge(Logger.layer([logger]), Layer.succeed(Tracer.Tracer, tracer)))
    )
    all(exit)
    if (Exit.isFailure(exit)) {
      lines.push(Cause.pretty(exit.cause), JSON.stringify(exit.cause))
      all(Cause.squash(exit.cause))
    }
    for (const span of spans) all([...span.attributes])
    return lines.join("\n")
  })

const secret = Redacted.make(`${planted}-client-secret`)

/** Answers that repeat what was sent to them, as careless servers do. */
const echo = (servers: Servers, path: string, status = 400) =>
  servers.routes.set(path, ({ body, form, headers }) => ({
    status,
    headers: { "x-echo": headers.authorization ?? "none" },
    body: {
      error: "invalid_grant",
      error_description: `sent: ${[...form.values()].join(" ")} ${headers.authorization} ${body}`.slice(0, 4_000)
    }
  }))

const secretTokens = (servers: Servers) =>
  servers.routes.set("/as/token", ({ form }) => {
    servers.accepted.add(`${planted}-access`)
    return {
      body: {
        access_token: `${planted}-access`,
        refresh_token: `${planted}-refresh`,
        token_type: "Bearer",
        expires_in: 600,
        grant: form.get("grant_type")
      }
    }
  })

const test = (body: (servers: Servers, oauth: OAuth.OAuth) => Effect.Effect<string, unknown>) =>
  Effect.gen(function*() {
    const servers = yield* start
    servers.redirect = { ...servers.redirect, code: `${planted}-code` }
    servers.metadata["token_endpoint_auth_methods_supported"] = ["client_secret_basic"]
    const oauth = yield* OAuth.make({
      grant: Grant.authorizationCode({
        clientName: "Tea House",
        client: { clientId: "c", clientSecret: secret, issuer: servers.issuer }
      })
    })
    const text = yield* body(servers, oauth)
    assert.isAbove(text.length, 0)
    const basic = btoa(`c:${Redacted.value(secret)}`)
    for (const each of [planted, basic, ...servers.forms("/as/token").flatMap((form) => form["code_verifier"] ?? [])]) {
      assert.notInclude(text, each)
    }
  }).pipe(Effect.provide([person().layer, TokenStore.layerMemory]))

describe("secrets", () => {
  it.effect("are not printed after a sign-in, by the value itself or by its state", () =>
    test((servers, oauth) =>
      Effect.gen(function*() {
        secretTokens(servers)
        const changes = yield* Effect.forkChild(Stream.runCollect(Stream.take(oauth.changes, 2)))
        void changes
        return yield* printed(
          Effect.map(Effect.andThen(request(oauth, servers.url), oauth.state(servers.url)), (state) => [oauth, state])
        )
      })
    ))

  it.effect("are not printed when the token endpoint repeats them in its error", () =>
    test((servers, oauth) =>
      Effect.gen(function*() {
        echo(servers, "/as/token")
        return yield* printed(request(oauth, servers.url))
      })
    ))

  it.effect("are not printed when a refresh fails, or a revocation", () =>
    test((servers, oauth) =>
      Effect.gen(function*() {
        secretTokens(servers)
        assert.strictEqual(yield* request(oauth, servers.url), 200)
        servers.accepted.clear()
        yield* TestClock.adjust("9 minutes")
        echo(servers, "/as/token", 503)
        const refresh = yield* printed(request(oauth, servers.url))
        echo(servers, "/as/token", 400)
        const refused = yield* printed(request(oauth, servers.url))
        echo(servers, "/as/revoke", 400)
        return `${refresh}${refused}${yield* printed(oauth.signOut(servers.url))}`
      })
    ))

  it.effect("are not printed when the answer belongs to another sign-in", () =>
    test((servers, oauth) => {
      servers.redirect["iss"] = "https://evil.example"
      return printed(request(oauth, servers.url))
    }))

  it.effect("are not printed when the answer cannot be read", () =>
    test((servers, oauth) => {
      servers.routes.set("/as/token", () => ({ body: { access_token: `${planted}-access`, token_type: 7 } }))
      return printed(request(oauth, servers.url))
    }))

  it.effect("2025-06-18 · Token Handling · are sent to their own origin alone", () =>
    test((servers, oauth) =>
      Effect.gen(function*() {
        secretTokens(servers)
        assert.strictEqual(yield* request(oauth, servers.url), 200)
        for (const { headers, method, path, query } of servers.requests) {
          const text = `${JSON.stringify(headers)}${query.toString()}`
          if (path !== "/mcp" && path !== "/as/token") assert.notInclude(text, planted, `${method} ${path}`)
          // 2025-11-25 · Access Token Usage · never in the query string.
          assert.isFalse(query.has("access_token"))
        }
        return "x"
      })
    ))
})
