/**
 * Upstream tokens in tasks that run for days: over real files, across restarts of the worker, with the clock of the
 * engine and that of the proxy moved together.
 */
import * as DevServer from "@skein/auth/DevServer"
import * as Protect from "@skein/auth/Protect"
import * as Proxy from "@skein/auth/Proxy"
import * as ProxyStore from "@skein/auth/ProxyStore"
import * as TestUser from "@skein/auth/TestUser"
import * as UpstreamToken from "@skein/auth/UpstreamToken"
import { afterEach, assert, beforeEach, describe, it, vi } from "@effect/vitest"
import * as McpServer from "@skein/server/McpServer"
import * as NodeHttp from "@skein/server/NodeHttp"
import * as RawServer from "@skein/testing/RawServer"
import * as SqliteClient from "@skein/sql/SqliteClient"
import * as SqliteTasks from "@skein/tasks/SqliteTasks"
import * as Step from "@skein/tasks/Step"
import * as Task from "@skein/tasks/Task"
import * as Tasks from "@skein/tasks/Tasks"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import { TestClock } from "effect/testing"
import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as oauth from "../devServer/kit.ts"
import * as kit from "./kit.ts"

const day = 86_400_000
const hour = 3_600_000

// Only what reads the time of day: sockets keep their timers.
beforeEach(() => void vi.useFakeTimers({ toFake: ["Date"] }))
afterEach(() => void vi.useRealTimers())

const turn = Effect.promise(() => new Promise((resolve) => setTimeout(resolve, 2)))

/** Moves both clocks, and lets the engine, which stores with real SQL, and sockets go on. */
const wait = (millis: number) =>
  Effect.gen(function*() {
    const step = 4 * hour
    for (let passed = 0; passed < millis; passed += step) {
      vi.setSystemTime(Date.now() + step)
      yield* TestClock.adjust(step)
      yield* turn
    }
  })

/** Waits in real time until something is so. */
const until = <A>(ask: Effect.Effect<A>, isSo: (value: A) => boolean) =>
  Effect.gen(function*() {
    for (let attempt = 0; attempt < 5_000; attempt++) {
      const value = yield* ask
      if (isSo(value)) return value
      yield* TestClock.adjust(60_000)
      yield* turn
    }
    return assert.fail("it was never so")
  })

const folder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "skein-proxy-tasks-"))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true }))
)

interface Ask {
  readonly day: number
  readonly token: string
  readonly status: number
}

class NoToken extends Schema.TaggedError<NoToken>()("NoToken", { reason: Schema.String, message: Schema.String }) {}

const isOutage = ({ input }: { readonly input: unknown }) =>
  input instanceof NoToken && input.reason === "UpstreamUnavailable"

/** The actions of the task. */
interface Log {
  readonly asked: Array<Ask>
  stopped: number
}

/** A task of three days that asks the upstream who its user is, once a day. */
const watching = (upstream: string, log: Log, prepared = false) => {
  const token = (grant: string | undefined) =>
    grant === undefined ? UpstreamToken.current : UpstreamToken.ofGrant(grant)
  const ask = (at: number, grant: string | undefined) =>
    Step.run(
      `day ${at}`,
      // The task continues during an outage of the upstream.
      { success: Schema.Int, error: NoToken, retry: Schedule.while(Schedule.spaced("1 hour"), isOutage) },
      () =>
        Effect.gen(function*() {
          const current = yield* Effect.mapError(
            token(grant),
            ({ message, reason }) => new NoToken({ reason: reason._tag, message })
          )
          const headers = { authorization: `Bearer ${Redacted.value(current)}` }
          const { status } = yield* Effect.promise(() => fetch(`${upstream}/me`, { headers }))
          log.asked.push({ day: at, token: Redacted.value(current), status })
          return status
        })
    )
  const body = (grant: string | undefined) =>
    Effect.gen(function*() {
      for (let at = 1; at <= 3; at++) {
        yield* ask(at, grant)
        yield* Step.sleep(`night ${at}`, "1 day")
      }
      return "watched"
    }).pipe(
      Effect.catchTag("NoToken", ({ message, reason }) => {
        log.stopped++
        return Effect.fail({ message: `${reason}: ${message}` })
      })
    )
  const task = Task.make("watch", { ttl: "60 days", pollInterval: "1 minute" })
  return prepared
    ? Task.layerPrepared(task, Schema.String, () => UpstreamToken.currentGrant, (_input, grant) => body(grant))
    : Task.layer(task, () => body(undefined))
}

/** A server that can be stopped and started again over the same files. */
const start = (options: {
  readonly prepared?: boolean
  readonly proxy?: Partial<Proxy.Options>
  /** A server between the proxy and the token endpoint of the upstream. */
  readonly between?: (issuer: string) => Effect.Effect<string, never, Scope.Scope>
} = {}) =>
  Effect.gen(function*() {
    const path = yield* folder
    const { origin, raw } = yield* kit.port
    const closed = raw.listener
    const upstream = yield* DevServer.make({
      clients: [{
        clientId: "tea-proxy",
        clientSecret: kit.upstreamSecret,
        tokenEndpointAuthMethod: "client_secret_post",
        redirectUris: [`${origin}/upstream/callback`]
      }]
    })
    const log: Log = { asked: [], stopped: 0 }
    const resource = `${origin}/mcp`
    const upstreamOptions = {
      name: "Accounts",
      issuer: upstream.issuer,
      clientId: "tea-proxy",
      clientSecret: Redacted.make(kit.upstreamSecret),
      scope: "openid offline_access"
    }
    const run = Effect.gen(function*() {
      const scope = yield* Scope.make()
      yield* Effect.addFinalizer(() => Scope.close(scope, Exit.void))
      yield* Effect.gen(function*() {
        const database = SqliteClient.layer({ filename: join(path, "proxy.db") })
        const store = yield* Layer.build(Layer.provide(ProxyStore.layerSql, database))
        const proxy = yield* Proxy.make({
          resource,
          scopes: kit.scopes,
          keys: [kit.key],
          upstream: upstreamOptions,
          ...(options.between === undefined ? {} : {
            upstream: {
              ...upstreamOptions,
              tokenEndpoint: `${yield* options.between(upstream.issuer)}/token`
            }
          }),
          ...options.proxy
        }).pipe(Effect.provideContext(store))
        const Server = McpServer.layer(
          { name: "tea", version: "1.0.0" },
          watching(upstream.issuer, log, options.prepared),
          Tasks.layer()
        ).pipe(
          Layer.provide(SqliteTasks.layer({ filename: join(path, "tasks.db"), pollInterval: "1 hour" })),
          Layer.provide(proxy.layer)
        )
        const context = yield* Layer.build(Server)
        raw.listener = yield* Effect.provideContext(NodeHttp.handler({ protection: proxy.protection }), context)
      }).pipe(Scope.provide(scope))
      return { stop: Effect.andThen(Effect.sync(() => void (raw.listener = closed)), Scope.close(scope, Exit.void)) }
    })
    const read = Effect.sync(() =>
      ["tasks.db", "tasks.db-wal", "proxy.db", "proxy.db-wal"].map((name) => {
        try {
          return readFileSync(join(path, name), "latin1")
        } catch {
          return ""
        }
      }).join("\n")
    )
    return { origin, resource, upstream, log, run, files: read }
  })

const post = (resource: string, token: string, method: string, params: Readonly<Record<string, unknown>>) =>
  Effect.promise(async () => {
    const reply = await fetch(resource, {
      method: "POST",
      headers: {
        authorization: `Bearer ${token}`,
        accept: "application/json, text/event-stream",
        "content-type": "application/json",
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": method,
        "mcp-name": String(params["name"] ?? params["taskId"])
      },
      body: JSON.stringify({
        jsonrpc: "2.0",
        id: 1,
        method,
        params: {
          ...params,
          _meta: {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": { name: "test", version: "1.0.0" },
            "io.modelcontextprotocol/clientCapabilities": { extensions: { "io.modelcontextprotocol/tasks": {} } }
          }
        }
      })
    })
    const text = await reply.text()
    return { status: reply.status, result: text === "" ? {} : JSON.parse(text).result ?? {} }
  })

const signIn = (origin: string, name = "ada") =>
  Effect.gen(function*() {
    const client = yield* oauth.connect(origin, { redirectUri: kit.redirectUri })
    const url = yield* client.authorizationUrl({ scope: "tea:read", resource: `${origin}/mcp` })
    return { client, tokens: yield* client.exchange(yield* TestUser.make({ name }).signIn(url)) }
  })

const refreshed = ({ client, tokens }: Effect.Success<ReturnType<typeof signIn>>) =>
  Effect.map(client.refresh(tokens.refresh_token!), ({ body }) => body as unknown as oauth.Tokens)

/** Starts the task of a user. Returns its id. */
const watch = (resource: string, { access_token }: oauth.Tokens): Effect.Effect<string> =>
  Effect.map(
    post(resource, access_token, "tools/call", { name: "watch", arguments: {} }),
    ({ result }) => result.taskId
  )

/** Waits until the task has used a token so often. */
const asked = ({ log }: { readonly log: Log }, times: number) =>
  until(Effect.sync(() => log.asked.length), (count) => count === times)

/** The task of a user, until it has ended. */
const outcome = (resource: string, token: string, taskId: string) =>
  Effect.map(
    until(
      post(resource, token, "tasks/get", { taskId }),
      ({ result }) => result.status !== undefined && result.status !== "working"
    ),
    ({ result }) => result
  )

// Days of timers take a while on a busy machine.
describe("an upstream token in a task that runs for days", { timeout: 180_000 }, () => {
  it.effect("is renewed at each step, and found again after a restart of the worker", () =>
    Effect.gen(function*() {
      const running = yield* start()
      const { stop } = yield* running.run
      const user = yield* signIn(running.origin)
      const taskId = yield* watch(running.resource, user.tokens)
      yield* asked(running, 1)
      // The token has expired long ago, and was renewed.
      yield* wait(day)
      yield* asked(running, 2)
      yield* stop
      yield* wait(12 * hour)
      yield* running.run
      yield* wait(12 * hour)
      yield* asked(running, 3)
      yield* wait(day)
      const { access_token } = yield* refreshed(user)
      const ended = yield* outcome(running.resource, access_token, taskId)
      assert.deepInclude(ended, { status: "completed" })
      assert.strictEqual(ended.result.content[0].text, "watched")
      assert.deepStrictEqual(running.log.asked.map(({ day, status }) => [day, status]), [[1, 200], [2, 200], [3, 200]])
      assert.strictEqual(new Set(running.log.asked.map(({ token }) => token)).size, 3)
      const counts = yield* running.upstream.counts
      assert.deepInclude(counts, { authorizations: 1, refreshes: 2, refreshReuses: 0 })
      const files = yield* running.files
      for (const { token } of running.log.asked) assert.notInclude(files, token)
    }))

  it.effect("fails with SignInRequired after the user signed out, also after a restart", () =>
    Effect.gen(function*() {
      const running = yield* start()
      const { stop } = yield* running.run
      const user = yield* signIn(running.origin)
      const taskId = yield* watch(running.resource, user.tokens)
      yield* asked(running, 1)
      const revoked = yield* user.client.post("token/revocation", { token: user.tokens.refresh_token! })
      assert.strictEqual(revoked.status, 200)
      yield* stop
      yield* running.run
      yield* wait(day)
      // The user comes back later, after the task has ended.
      yield* until(Effect.sync(() => running.log.stopped), (count) => count === 1)
      const again = yield* signIn(running.origin)
      const ended = yield* outcome(running.resource, again.tokens.access_token, taskId)
      assert.strictEqual(ended.result.isError, true)
      assert.strictEqual(
        ended.result.content[0].text,
        "SignInRequired: the sign-in has ended: the user must sign in again"
      )
      assert.strictEqual(running.log.asked.length, 1)
    }))

  it.effect("fails with SignInRequired after the upstream has ended the grant", () =>
    Effect.gen(function*() {
      const running = yield* start()
      yield* running.run
      const user = yield* signIn(running.origin)
      const taskId = yield* watch(running.resource, user.tokens)
      yield* asked(running, 1)
      yield* running.upstream.revokeAll
      yield* wait(day)
      // The refresh at the upstream failed, so that of the client fails too.
      yield* until(user.client.refresh(user.tokens.refresh_token!), ({ status }) => status === 400)
      yield* until(Effect.sync(() => running.log.stopped), (count) => count === 1)
      const again = yield* signIn(running.origin)
      const ended = yield* outcome(running.resource, again.tokens.access_token, taskId)
      assert.match(ended.result.content[0].text, /^SignInRequired: the sign-in has ended/)
      assert.strictEqual(running.log.asked.length, 1)
    }))

  it.effect("ends with refreshTokenLifetime, which renewals at the upstream do not extend", () =>
    Effect.gen(function*() {
      const running = yield* start({ proxy: { refreshTokenLifetime: "36 hours" } })
      yield* running.run
      const user = yield* signIn(running.origin)
      const taskId = yield* watch(running.resource, user.tokens)
      yield* wait(2 * day)
      yield* until(Effect.sync(() => running.log.stopped), (count) => count === 1)
      const again = yield* signIn(running.origin)
      const ended = yield* outcome(running.resource, again.tokens.access_token, taskId)
      assert.match(ended.result.content[0].text, /^SignInRequired: the sign-in has ended/)
      assert.deepStrictEqual(running.log.asked.map(({ day }) => day), [1, 2])
    }))

  it.effect("goes on with another sign-in of the same user, but never with that of another user", () =>
    Effect.gen(function*() {
      const running = yield* start()
      yield* running.run
      const user = yield* signIn(running.origin)
      const taskId = yield* watch(running.resource, user.tokens)
      yield* asked(running, 1)
      const second = yield* signIn(running.origin)
      yield* signIn(running.origin, "grace")
      yield* user.client.post("token/revocation", { token: user.tokens.refresh_token! })
      yield* wait(day)
      yield* asked(running, 2)
      yield* second.client.post("token/revocation", { token: second.tokens.refresh_token! })
      yield* wait(day)
      yield* until(Effect.sync(() => running.log.stopped), (count) => count === 1)
      const again = yield* signIn(running.origin)
      const ended = yield* outcome(running.resource, again.tokens.access_token, taskId)
      assert.match(ended.result.content[0].text, /^SignInRequired: the sign-in has ended/)
      assert.strictEqual(running.log.asked.length, 2)
    }))

  it.effect("is asked for again after an outage of the upstream, which does not end the sign-in", () =>
    Effect.gen(function*() {
      let isAway = false
      let attempts = 0
      const between = (issuer: string) =>
        Effect.map(
          RawServer.http((request, response) => {
            if (isAway) {
              attempts++
              return void response.writeHead(503).end()
            }
            const chunks: Array<Buffer> = []
            request.on("data", (chunk: Buffer) => chunks.push(chunk)).on("end", () => {
              const headers = { "content-type": "application/x-www-form-urlencoded" }
              void fetch(`${issuer}/token`, { method: "POST", headers, body: Buffer.concat(chunks) }).then(
                async (reply) =>
                  response.writeHead(reply.status, { "content-type": "application/json" }).end(await reply.text())
              )
            })
          }),
          ({ url }) => url.origin
        )
      const running = yield* start({ between })
      yield* running.run
      const user = yield* signIn(running.origin)
      yield* watch(running.resource, user.tokens)
      yield* asked(running, 1)
      isAway = true
      yield* wait(day)
      yield* until(Effect.sync(() => attempts), (count) => count >= 2)
      assert.strictEqual(running.log.asked.length, 1)
      isAway = false
      yield* asked(running, 2)
      assert.strictEqual(running.log.stopped, 0)
    }))

  it.effect("belongs to one sign-in if the task has prepared its grant", () =>
    Effect.gen(function*() {
      const running = yield* start({ prepared: true })
      yield* running.run
      const user = yield* signIn(running.origin)
      const taskId = yield* watch(running.resource, user.tokens)
      yield* asked(running, 1)
      const second = yield* signIn(running.origin)
      yield* user.client.post("token/revocation", { token: user.tokens.refresh_token! })
      yield* wait(day)
      const { access_token } = yield* refreshed(second)
      const ended = yield* outcome(running.resource, access_token, taskId)
      assert.match(ended.result.content[0].text, /^SignInRequired: the sign-in has ended/)
      assert.strictEqual(running.log.asked.length, 1)
    }))

  it.effect("is found by an id of principals that the server chooses", () =>
    Effect.gen(function*() {
      const principal = (token: Parameters<typeof Protect.idOf>[0]) => ({
        id: Protect.idOf(token, { perClient: true })
      })
      const running = yield* start({ proxy: { principal } })
      yield* running.run
      const user = yield* signIn(running.origin)
      const taskId = yield* watch(running.resource, user.tokens)
      yield* asked(running, 1)
      // Another program of the same user is another principal.
      const second = yield* signIn(running.origin)
      assert.notStrictEqual(second.client.clientId, user.client.clientId)
      assert.isUndefined(
        (yield* post(running.resource, second.tokens.access_token, "tasks/get", { taskId })).result.status
      )
    }))
})
