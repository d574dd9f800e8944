/** The option `protection`: refusals of requests, pages beside the endpoint, and credentials that handlers cannot read. */
import { describe, expect, it } from "@effect/vitest"
import * as Http from "@skein/server/Http"
import * as LegacySse from "@skein/server/LegacySse"
import { McpRequest } from "@skein/server/McpRequest"
import * as McpServer from "@skein/server/McpServer"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import { HttpServerRequest, toWeb } from "effect/http/HttpServerRequest"
import * as Logger from "effect/Logger"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import { adapters } from "./adapters.ts"
import * as fixtures from "./fixtures.ts"
import * as kit from "./kit.ts"

const challenge = "Bearer resource_metadata=\"https://tea.example/.well-known/oauth-protected-resource\""
const unauthorized = new Http.Refusal({
  status: 401,
  message: "Unauthorized: a token is required",
  headers: { "www-authenticate": challenge }
})

/**
 * The seen that can be reached from a value by its properties and those of its prototypes, as a handler with a debugger
 * could.
 */
const reachable = (value: unknown, seen: Set<unknown> = new Set()): ReadonlySet<unknown> => {
  if (seen.has(value)) return seen
  seen.add(value)
  if ((typeof value !== "object" && typeof value !== "function") || value === null) return seen
  if (value instanceof Headers) { for (const [, text] of value) seen.add(text) }
  for (let owner: object | null = value; owner !== null; owner = Object.getPrototypeOf(owner)) {
    for (const key of Reflect.ownKeys(owner)) {
      try {
        reachable((value as { readonly [key: PropertyKey]: unknown })[key], seen)
      } catch {
        // A getter of another class.
      }
    }
  }
  return seen
}

/** The access token that a request of an adapter returns. */
const credentialOf = (request: unknown): unknown => {
  try {
    return (request as Http.HttpRequest).header("authorization")
  } catch {
    // It is another value.
    return undefined
  }
}

/** The credentials that a handler can read: by its request, and by the request of Effect's router. */
const credentials = Tool.layer(Tool.make("credentials"), () =>
  Effect.gen(function*() {
    const { caller, origin } = yield* McpRequest
    const request = yield* Effect.serviceOption(HttpServerRequest)
    const names = ["authorization", "dpop", "x-assertion", "x-other"]
    const seen = reachable([origin, Option.getOrUndefined(request)])
    const web = Option.isNone(request) ? undefined : yield* Effect.orDie(toWeb(request.value))
    return JSON.stringify({
      principal: caller.principal?.id,
      reached: ["Bearer ada", "proof", "secret"].filter((text) => seen.has(text)),
      delegated: [...seen].some((one) => credentialOf(one) !== undefined),
      web: web === undefined ? [] : ["authorization", "dpop", "x-assertion"].filter((name) => web.headers.has(name)),
      read: names.map((name) => origin?.header?.(name) ?? null),
      routed: Option.match(request, {
        onNone: () => names.map((name) => name === "x-other" ? "other" : null),
        onSome: ({ headers }) => names.map((name) => headers[name] ?? null)
      })
    })
  }))

const protectedBy = (more: Partial<Http.Protection> = {}): Http.Protection => ({
  identify: (request) => {
    const token = request.header("authorization")
    if (token === undefined) return Effect.fail(unauthorized)
    return token === "Bearer ada" ? { id: "ada" } : Effect.andThen(Effect.yieldNow, Effect.fail(unauthorized))
  },
  ...more
})

const echo = (headers: kit.Request["headers"] = {}) =>
  kit.modern("tools/call", { name: "echo", arguments: { text: "hi" } }, { headers })

const page: Http.Protection["pages"] = (request, answer) => {
  if (request.path === "/register") {
    request.read(
      1_000,
      (body) => answer.reply("fault" in body ? 413 : 200, {}, "fault" in body ? body.fault : body.text)
    )
    return true
  }
  if (!request.path.startsWith("/.well-known/")) return false
  const { method, path, query } = request
  setImmediate(() => answer.reply(200, { "access-control-allow-origin": "*" }, `${method} ${path} ${query}`))
  return true
}

describe.each(adapters)("a protected endpoint behind $name", ({ serve }) => {
  const listening = (protection: Http.Protection, options?: Http.Options) =>
    serve(fixtures.server(fixtures.echo, credentials), { ...options, protection })

  it.live("refuses a request with the status, message and headers of a Refusal, and handles one with a principal", () =>
    Effect.scoped(Effect.gen(function*() {
      const server = yield* listening(protectedBy())
      for (const headers of [{}, { authorization: "Bearer eve" }]) {
        const refused = yield* kit.send(server, echo(headers))
        expect(refused.status).toBe(401)
        expect(refused.headers["www-authenticate"]).toBe(challenge)
        expect(refused.headers["content-type"]).toBe("application/json")
        expect(refused.json).toEqual({ jsonrpc: "2.0", error: { code: -32600, message: unauthorized.message } })
      }
      expect((yield* kit.send(server, echo({ authorization: "Bearer ada" }))).status).toBe(200)
      for (const method of ["GET", "DELETE"]) {
        const refused = yield* kit.send(server, { method, headers: { "mcp-session-id": "x" } })
        expect([method, refused.status]).toEqual([method, 401])
      }
      // A principal that the application has found is not asked for credentials.
      expect((yield* kit.send(server, echo({ "x-user": "bob" }))).status).toBe(200)
    })))

  it.live("asks the protection after Host, Origin, path and method", () =>
    Effect.scoped(Effect.gen(function*() {
      let asked = 0
      const server = yield* listening({ identify: () => Effect.fail((asked++, unauthorized)) })
      const refused = [
        yield* kit.send(server, echo({ host: "evil.example" })),
        yield* kit.send(server, echo({ origin: "https://evil.example" })),
        yield* kit.send(server, { ...echo(), path: "/other" }),
        yield* kit.send(server, { ...echo(), method: "PUT" })
      ]
      expect(refused.map(({ status }) => status)).toEqual([403, 403, 404, 405])
      expect(asked).toBe(0)
      // Its body is not read: neither its type nor its size is checked.
      expect((yield* kit.send(server, echo({ "content-type": "text/plain" }))).status).toBe(401)
      expect(asked).toBe(1)
    })))

  it.live("answers pages for every origin, with bodies up to the limit of the page, and only for allowed hosts", () =>
    Effect.scoped(Effect.gen(function*() {
      const paths = ["/.well-known/*", "/register"]
      const server = yield* listening(protectedBy({ pages: page, paths }))
      const at = "/.well-known/oauth-protected-resource/mcp"
      const headers = { origin: "https://elsewhere.example" }
      const found = yield* kit.send(server, { method: "GET", path: `${at}?a=b`, headers })
      expect([found.status, found.text]).toEqual([200, `GET ${at} a=b`])
      expect(found.headers["access-control-allow-origin"]).toBe("*")
      expect((yield* kit.send(server, { method: "OPTIONS", path: at, headers })).text).toContain("OPTIONS")
      const evil = { method: "GET", path: at, headers: { host: "evil.example" } }
      expect((yield* kit.send(server, evil)).status).toBe(403)
      expect((yield* kit.send(server, { path: "/register", body: "name=tea" })).text).toBe("name=tea")
      const large = yield* kit.send(server, { path: "/register", body: "x".repeat(2_000) })
      expect([large.status, large.text]).toEqual([413, "TooLarge"])
      expect((yield* kit.send(server, { method: "GET", path: "/else" })).status).toBe(404)
      expect((yield* kit.send(server, echo())).status).toBe(401)
    })))

  it.live("answers the option pages after Host and Origin, which authenticate on their own and find their scope closed", () =>
    Effect.gen(function*() {
      let closed = 0
      yield* Effect.scoped(Effect.gen(function*() {
        const pages: Http.Options["pages"] = Effect.acquireRelease(
          Effect.map(McpServer.McpServer, ({ options: { name } }): Http.Pages => ({
            paths: ["/console/*"],
            handle: (request, answer) => {
              if (!request.path.startsWith("/console/")) return false
              answer.reply(200, {}, `${name} ${request.method} ${request.header("authorization")}`)
              return true
            }
          })),
          () => Effect.sync(() => void closed++)
        )
        const server = yield* serve(fixtures.server(fixtures.echo), { pages, protection: protectedBy() })
        const at = { method: "GET", path: "/console/tree", headers: { authorization: "Bearer eve" } }
        const { status, text } = yield* kit.send(server, at)
        expect([status, text]).toEqual([200, expect.stringMatching(/^\S+ GET Bearer eve$/)])
        for (const headers of [{ host: "evil.example" }, { origin: "https://evil.example" }]) {
          expect((yield* kit.send(server, { ...at, headers })).status).toBe(403)
        }
        expect((yield* kit.send(server, { ...at, path: "/console" })).status).toBe(404)
        expect((yield* kit.send(server, echo())).status).toBe(401)
        expect((yield* kit.send(server, echo({ authorization: "Bearer ada" }))).status).toBe(200)
      }))
      expect(closed).toBe(1)
    }))

  it.live("withholds the credentials of a request from handlers", () =>
    Effect.scoped(Effect.gen(function*() {
      const server = yield* listening(protectedBy({ credentialHeaders: ["X-Assertion"] }))
      const headers = { authorization: "Bearer ada", dpop: "proof", "x-assertion": "secret", "x-other": "other" }
      const call = kit.modern("tools/call", { name: "credentials", arguments: {} }, { headers })
      const { json } = yield* kit.send(server, call)
      const seen = [null, null, null, "other"]
      expect(JSON.parse(json.result.content[0].text)).toEqual({
        principal: "ada",
        reached: [],
        delegated: false,
        web: [],
        read: seen,
        routed: seen
      })
    })))

  it.live("withholds the credentials of a request with a principal, unless they are readable", () =>
    Effect.scoped(Effect.gen(function*() {
      const seenWith = (options: Http.Options, user: kit.Request["headers"]) =>
        Effect.gen(function*() {
          const server = yield* serve(fixtures.server(credentials), options)
          const headers = { authorization: "Bearer ada", dpop: "proof", "x-other": "other", ...user }
          const call = kit.modern("tools/call", { name: "credentials", arguments: {} }, { headers })
          const { read, reached, routed } = JSON.parse((yield* kit.send(server, call)).json.result.content[0].text)
          return { read, reached, routed: routed[0] }
        })
      const ada = { "x-user": "ada" }
      expect(yield* seenWith({}, ada)).toEqual({ read: [null, null, null, "other"], reached: [], routed: null })
      const readable: Http.Options = { readableCredentials: ["Authorization"] }
      const allowed = yield* seenWith(readable, ada)
      expect(allowed.read).toEqual(["Bearer ada", null, null, "other"])
      expect([null, "Bearer ada"]).toContain(allowed.routed)
      // The server has accepted no credentials of an anonymous caller.
      expect((yield* seenWith({}, {})).read).toEqual(["Bearer ada", "proof", null, "other"])
      // The token of a protection is for this server only.
      expect((yield* seenWith({ ...readable, protection: protectedBy() }, {})).read[0]).toBeNull()
    })))

  it.live("authenticates each request of a session, and keeps the session from other principals", () =>
    Effect.scoped(Effect.gen(function*() {
      const identify: Http.FindPrincipal = (request) => {
        const [, name] = /^Bearer (ada|bob)$/.exec(request.header("authorization") ?? "") ?? []
        return name === undefined ? Effect.fail(unauthorized) : { id: name }
      }
      const server = yield* listening({ identify })
      const initialize = {
        jsonrpc: "2.0",
        id: 0,
        method: "initialize",
        params: { protocolVersion: "2025-03-26", capabilities: {}, clientInfo: { name: "test", version: "1" } }
      }
      const as = (who: string | undefined, more: kit.Request["headers"] = {}) => ({
        ...kit.posting,
        ...(who === undefined ? {} : { authorization: `Bearer ${who}` }),
        ...more
      })
      const opened = yield* kit.send(server, { headers: as("ada"), body: initialize })
      const session = { "mcp-session-id": opened.headers["mcp-session-id"]! }
      const ping = { jsonrpc: "2.0", id: 1, method: "ping" }
      const listen = { accept: "text/event-stream", ...session }
      const requests = (who: string | undefined): ReadonlyArray<readonly [string, kit.Request]> => [
        ["request", { headers: as(who, session), body: ping }],
        ["batch", { headers: as(who, session), body: [ping, { ...ping, id: 2 }] }],
        ["notification", { headers: as(who, session), body: { jsonrpc: "2.0", method: "notifications/initialized" } }],
        ["response", { headers: as(who, session), body: { jsonrpc: "2.0", id: 1, result: {} } }],
        ["GET", { method: "GET", headers: as(who, listen) }],
        ["resumed GET", { method: "GET", headers: as(who, { ...listen, "last-event-id": "0-0" }) }],
        ["DELETE", { method: "DELETE", headers: as(who, session) }]
      ]
      for (const [what, request] of requests(undefined)) {
        expect([what, (yield* kit.send(server, request)).status]).toEqual([what, 401])
      }
      for (const [what, request] of requests("bob")) {
        expect([what, (yield* kit.send(server, request)).status]).toEqual([what, 404])
      }
      const batch = yield* kit.send(server, requests("ada")[1]![1])
      expect(batch.json.map(({ id }: { readonly id: number }) => id)).toEqual([1, 2])
      expect((yield* kit.send(server, requests("ada").at(-1)![1])).status).toBe(204)
    })))

  it.live("authenticates both requests of HTTP+SSE", () =>
    Effect.scoped(Effect.gen(function*() {
      const server = yield* listening(protectedBy(), { legacySse: LegacySse.make() })
      const listen = { method: "GET", path: "/sse", headers: { accept: "text/event-stream" } }
      expect((yield* kit.send(server, listen)).status).toBe(401)
      const authorization = "Bearer ada"
      const stream = yield* kit.open(server, { ...listen, headers: { ...listen.headers, authorization } })
      const { data } = yield* stream.next
      const ping = { path: data!, headers: kit.posting, body: { jsonrpc: "2.0", id: 1, method: "ping" } }
      expect((yield* kit.send(server, ping)).status).toBe(401)
      expect((yield* kit.send(server, { ...ping, headers: { ...kit.posting, authorization } })).status).toBe(202)
      expect(yield* stream.message).toMatchObject({ id: 1, result: {} })
    })))
})

describe("a failure to find the principal", () => {
  const failing = (identify: Http.FindPrincipal, by: "protection" | "principal" = "protection") => {
    const logged: Array<string> = []
    const logger = Logger.make(({ message }) => void logged.push(String(message)))
    return Effect.gen(function*() {
      const server = fixtures.server(fixtures.echo).pipe(Layer.provide(Logger.layer([logger])))
      const option = by === "protection"
        ? { protection: { identify } }
        : { principal: () => identify(undefined as never, undefined as never) }
      const reply = yield* kit.send(yield* kit.serve(server, option), echo())
      return { reply, logged }
    })
  }

  for (const by of ["protection", "principal"] as const) {
    for (const status of [400, 403, 429, 503]) {
      it.live(`responds ${status} if the function of ${by} fails with or throws a Refusal of this status`, () =>
        Effect.scoped(Effect.gen(function*() {
          const refusal = new Http.Refusal({ status, message: "Not now", headers: { "retry-after": "7" } })
          const throwing = () => {
            throw refusal
          }
          for (const identify of [() => Effect.fail(refusal), throwing]) {
            const { logged, reply } = yield* failing(identify, by)
            expect([reply.status, reply.headers["retry-after"]]).toEqual([status, "7"])
            expect(reply.json.error).toEqual({ code: status < 500 ? -32600 : -32603, message: "Not now" })
            expect(logged.join()).not.toContain("failed to find")
          }
        })))
    }
  }

  const faults: ReadonlyArray<readonly [string, () => Effect.Effect<never, unknown>]> = [
    ["fails with another error", () => Effect.fail({ _tag: "Other", message: "secret" })],
    ["dies", () => Effect.die(new Error("secret"))],
    ["dies with a Refusal", () => Effect.die(unauthorized)],
    ["throws another error", () => {
      throw new Error("secret")
    }],
    ["refuses with a status of success", () => Effect.fail(new Http.Refusal({ status: 200, message: "secret" }))],
    [
      "refuses with a header that HTTP does not allow",
      () => Effect.fail(new Http.Refusal({ status: 401, message: "secret", headers: { a: "b\r\nc: d" } }))
    ]
  ]
  for (const [name, identify] of faults) {
    it.live(`responds 500 without the error, and logs it, if the function ${name}`, () =>
      Effect.scoped(Effect.gen(function*() {
        const { logged, reply } = yield* failing(identify)
        expect(reply.status).toBe(500)
        expect(reply.text).not.toContain("secret")
        expect(logged.join()).toContain("failed to find the principal of a request")
      })))
  }
})

describe("Http.paths", () => {
  it("lists all paths that a router has to pass", () => {
    expect(Http.paths({})).toEqual(["/mcp"])
    const protection = protectedBy({ paths: ["/.well-known/oauth-protected-resource"] })
    expect(Http.paths({ path: "/tea", legacySse: LegacySse.make(), protection }))
      .toEqual(["/tea", "/sse", "/messages", "/.well-known/oauth-protected-resource"])
  })
})
