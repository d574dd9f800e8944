/** Several callers of one proxy: whose questions they get, whose connections they use, and the bounds of both. */
import { describe, expect, it } from "@effect/vitest"
import * as Client from "@skein/client/Client"
import * as ClientElicitation from "@skein/client/Elicitation"
import * as Http from "@skein/client/Http"
import { NotificationListener } from "@skein/client/NotificationListener"
import * as Proxy from "@skein/gateway/Proxy"
import type * as JsonRpc from "@skein/protocol/JsonRpc"
import * as McpError from "@skein/protocol/McpError"
import * as Method from "@skein/protocol/Method"
import * as Elicitation from "@skein/server/Elicitation"
import { Development, type HandlerError } from "@skein/server/HandlerError"
import * as McpServer from "@skein/server/McpServer"
import * as Prompt from "@skein/server/Prompt"
import { McpRequest } from "@skein/runtime/RequestContext"
import * as Tool from "@skein/server/Tool"
import * as WebHttp from "@skein/server/WebHttp"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import type * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import { answering, build, connect, type Running, source, through } from "./kit.ts"
import { Log, remote } from "./remote.ts"

const textOf = (result: { readonly content: ReadonlyArray<unknown> }) => (result.content[0] as { text: string }).text
const until = (condition: () => boolean): Effect.Effect<void> =>
  Effect.gen(function*() {
    while (!condition()) yield* Effect.sleep(5)
  })

/** A server that asks with the name that it is called with, once two calls have begun. */
const pairing = () => {
  let begun = 0
  const both = Deferred.makeUnsafe<void>()
  return McpServer.layer(
    { name: "pairing", version: "1" },
    Tool.layer(Tool.make("greet", { input: { who: Schema.String } }), ({ who }) =>
      Effect.gen(function*() {
        if (++begun === 2) yield* Deferred.succeed(both, undefined)
        yield* Deferred.await(both)
        const answer = yield* Elicitation.form(`Are you ${who}?`, { name: Schema.String })
        return answer.action === "accept" ? `${who} is ${answer.content.name}` : answer.action
      }))
  ) as Layer.Layer<McpServer.McpServer, unknown>
}

/** A client that answers forms with its name, and records the messages of the forms. */
const named = (near: Running, name: string, asked: Array<string>, revision: "2025-11-25" | "2026-07-28") =>
  connect(
    near,
    revision,
    { principal: name },
    ClientElicitation.layer({
      form: ({ message }) =>
        Effect.sync(() => {
          asked.push(`${name}: ${message}`)
          return ClientElicitation.accept({ name })
        })
    })
  )

const greetings = (near: Running, asked: Array<string>) =>
  Effect.gen(function*() {
    const ada = yield* named(near, "Ada", asked, "2025-11-25")
    const bob = yield* named(near, "Bob", asked, "2026-07-28")
    const results = yield* Effect.all(
      [ada, bob].map((client, at) => client.callTool("greet", { who: ["Ada", "Bob"][at] })),
      { concurrency: "unbounded" }
    )
    return results.map(textOf)
  })

/** Returns the HTTP transport to a server, from an address. */
const httpTo = ({ context }: Running) =>
  Effect.gen(function*() {
    const handler = yield* Effect.provideContext(
      WebHttp.handler({ allowedHosts: ["server.example"] }),
      Context.merge(context as Context.Context<McpServer.McpServer>, yield* Effect.context<Scope.Scope>())
    )
    return (address: string | undefined) => {
      const fetch: typeof globalThis.fetch = (input, init) =>
        handler(new Request(input, init), address === undefined ? {} : { address })
      return Http.transport({ url: "https://server.example/mcp", fetch })
    }
  })

describe("calls of several callers at once", () => {
  it.live("are asked their own questions over HTTP, on one connection", () =>
    Effect.gen(function*() {
      const far = yield* build(pairing())
      const make = Client.make((yield* httpTo(far))(undefined), { revisions: ["2025-11-25"] })
      const near = yield* build(McpServer.layer({ name: "near", version: "1" }, Proxy.layer(make)))
      const asked: Array<string> = []
      expect(yield* greetings(near, asked)).toEqual(["Ada is Ada", "Bob is Bob"])
      expect(asked.toSorted()).toEqual(["Ada: Are you Ada?", "Bob: Are you Bob?"])
    }))

  it.live("are refused where the remote server does not name the call, so that nobody else is asked", () =>
    Effect.gen(function*() {
      const { near } = yield* through(pairing(), "2025-11-25")
      const asked: Array<string> = []
      const results = yield* greetings(near, asked)
      for (const text of results) expect(text).toMatch(/several callers have requests in progress/)
      expect(asked).toEqual([])
    }))

  it.live("are asked their own questions with a connection for each principal", () =>
    Effect.gen(function*() {
      const far = yield* build(pairing())
      const connections = Proxy.perPrincipal(() => source(far, "2025-11-25"))
      const near = yield* build(
        McpServer.layer({ name: "near", version: "1" }, Proxy.layer(source(far, "2025-11-25"), { connections }))
      )
      const asked: Array<string> = []
      expect(yield* greetings(near, asked)).toEqual(["Ada is Ada", "Bob is Bob"])
    }))
})

it.live(
  "a client that visits many URLs does not keep another one from the end of its visit",
  () =>
    Effect.gen(function*() {
      const visits = new Map<string, Elicitation.Visit>()
      const far = yield* build(McpServer.layer(
        { name: "far", version: "1" },
        Tool.layer(Tool.make("visit", { input: { id: Schema.String } }), ({ id }) =>
          Effect.map(Elicitation.url("Log in", "https://shop.example/login", { elicitationId: id }), (answer) => {
            if (answer.action === "accept") {
              visits.set(id, answer.content)
            }
            return answer.action
          })),
        Tool.layer(Tool.make("finish", { input: { id: Schema.String } }), ({ id }) =>
          Effect.as(visits.get(id)!.complete, "finished"))
      ))
      const near = yield* build(
        McpServer.layer({ name: "near", version: "1" }, Proxy.layer(source(far, "2025-11-25")))
      )
      const finished: Array<string> = []
      const client = (principal: string) => {
        const onNotification = ({ method, params }: JsonRpc.Notification) => {
          if (method === Method.ElicitationComplete.name) {
            finished.push(`${principal}: ${String(params?.["elicitationId"])}`)
          }
        }
        return connect(near, "2025-11-25", { principal }, answering).pipe(
          Effect.provideService(NotificationListener, { onNotification })
        )
      }
      const bob = yield* client("bob")
      const ada = yield* client("ada")
      yield* bob.callTool("visit", { id: "bob" })
      for (let count = 0; count < 1_001; count++) {
        yield* ada.callTool("visit", { id: `ada-${count}` })
      }
      for (const id of ["ada-0", "bob", "ada-1000"]) {
        yield* bob.callTool("finish", { id })
      }
      yield* until(() =>
        finished.length === 2
      )
      expect(finished).toEqual(["bob: bob", "ada: ada-1000"])
    }),
  30_000
)

/** A remote server that returns the principal of its caller, and a proxy with connections of their own. */
const passing = (
  how: typeof Proxy.perPrincipal,
  options: Proxy.ConnectionOptions = {}
) =>
  Effect.gen(function*() {
    const made: Array<string> = []
    const log = new Log()
    const far = yield* build(McpServer.layer(
      { name: "far", version: "1" },
      Tool.layer(Tool.make("who"), () => Effect.map(McpRequest, ({ caller }) => String(caller.principal?.id))),
      Tool.layer(Tool.make("slow"), () =>
        Effect.onInterrupt(Effect.andThen(log.add("began"), Effect.never as Effect.Effect<string>), () =>
          log.add("interrupted")))
    ))
    const connections = how(({ principal }) =>
      Effect.suspend(() => {
        made.push(String(principal?.id))
        return connect(far, "2025-11-25", { principal: `far ${String(principal?.id)}` })
      }), options)
    const near = yield* build(
      McpServer.layer({ name: "near", version: "1" }, Proxy.layer(source(far, "2025-11-25"), { connections }))
    )
    const open = Effect.map(far.server.inspect, ({ sessions }) =>
      sessions.length - 1)
    return { far, near, made, log, open }
  })

describe("connections for single callers", () => {
  it.live("show the caller the message of a failure that is not that of a client, as a tool does", () =>
    Effect.gen(function*() {
      const far = yield* build(McpServer.layer(
        { name: "far", version: "1" },
        Tool.layer(Tool.make("who"), () => Effect.succeed("you")),
        Prompt.layer(Prompt.make("hello"), () => Effect.succeed("Hello"))
      ))
      const failures: Record<string, Effect.Effect<never, HandlerError>> = {
        eve: Effect.fail({ message: "Link your account first" }),
        mallory: Effect.fail(McpError.other(-31_003, "Forbidden")),
        trent: Effect.die(new Error("secret")) as Effect.Effect<never>,
        carol: Effect.tryPromise(() => Promise.reject(new Error("secret")))
      }
      const connections = Proxy.perPrincipal(({ principal }) => failures[principal!.id]!)
      const near = yield* build(
        McpServer.layer({ name: "near", version: "1" }, Proxy.layer(source(far, "2025-11-25"), { connections }))
      )
      for (const revision of ["2025-11-25", "2026-07-28"] as const) {
        const eve = yield* connect(near, revision, { principal: "eve" }, answering)
        expect(yield* eve.callTool("who")).toMatchObject({
          content: [{ text: "Link your account first" }],
          isError: true
        })
        expect(yield* Effect.flip(eve.getPrompt("hello"))).toMatchObject({
          reason: { error: { reason: "InternalError", message: "Link your account first" } }
        })
        const mallory = yield* connect(near, revision, { principal: "mallory" })
        expect(yield* Effect.flip(mallory.callTool("who"))).toMatchObject({
          reason: { error: { code: -31_003, message: "Forbidden" } }
        })
        for (const principal of ["trent", "carol"]) {
          const client = yield* connect(near, revision, { principal })
          const { content, isError } = yield* client.callTool("who")
          expect(isError).toBe(true)
          expect(JSON.stringify(content)).toMatch(/[0-9a-f]{8}-/)
        }
      }
    }).pipe(Effect.provideService(Development, false)))

  it.live("are made for each principal, with its own credentials, and used again", () =>
    Effect.gen(function*() {
      const { made, near } = yield* passing(Proxy.perPrincipal)
      for (const revision of ["2025-11-25", "2026-07-28"] as const) {
        for (const principal of ["ada", "bob"]) {
          const client = yield* connect(near, revision, { principal })
          expect(textOf(yield* client.callTool("who"))).toBe(`far ${principal}`)
        }
      }
      expect(made).toEqual(["ada", "bob"])
    }))

  it.live("are made for each session, and closed with it", () =>
    Effect.gen(function*() {
      const { made, near, open } = yield* passing(Proxy.perSession)
      const scope = yield* Scope.make()
      const one = yield* Scope.provide(connect(near, "2025-11-25", { principal: "ada" }), scope)
      const two = yield* connect(near, "2025-11-25", { principal: "ada" })
      for (const client of [one, two, one]) yield* client.callTool("who")
      expect(made).toEqual(["ada", "ada"])
      expect(yield* open).toBe(2)
      yield* Scope.close(scope, Exit.void)
      while ((yield* open) > 1) yield* Effect.sleep(5)
    }))

  it.live("are closed when unused for idleTimeout", () =>
    Effect.gen(function*() {
      const { near, open } = yield* passing(Proxy.perPrincipal, { idleTimeout: 1 })
      const client = yield* connect(near, "2026-07-28", { principal: "ada" })
      yield* client.callTool("who")
      while ((yield* open) > 0) yield* Effect.sleep(5)
      expect(textOf(yield* client.callTool("who"))).toBe("far ada")
    }))

  it.live("are bounded (maxConnections): an unused one gives way, and used ones refuse the next caller", () =>
    Effect.gen(function*() {
      const { log, made, near } = yield* passing(Proxy.perPrincipal, { maxConnections: 1 })
      const ada = yield* connect(near, "2026-07-28", { principal: "ada" })
      const bob = yield* connect(near, "2026-07-28", { principal: "bob" })
      expect(textOf(yield* ada.callTool("who"))).toBe("far ada")
      expect(textOf(yield* bob.callTool("who"))).toBe("far bob")
      const slow = yield* Effect.forkChild(ada.callTool("slow"), { startImmediately: true })
      yield* until(() => log.count("began") === 1)
      expect(yield* Effect.flip(bob.callTool("who"))).toMatchObject({
        reason: { error: { reason: "InternalError", data: { reason: "TooManyConnections" } } }
      })
      yield* Fiber.interrupt(slow)
      yield* until(() => log.count("interrupted") === 1)
      expect(made).toEqual(["ada", "bob", "ada"])
    }))

  it.live("are for one client three quarters at most, so that others get one", () =>
    Effect.gen(function*() {
      const { log, made, near } = yield* passing(Proxy.perSession, { maxConnections: 4 })
      const session = (principal: string) => connect(near, "2025-11-25", { principal })
      const slow = (client: Client.Client) => Effect.forkChild(client.callTool("slow"), { startImmediately: true })
      for (let count = 1; count <= 3; count++) {
        yield* slow(yield* session("ada"))
        yield* until(() => log.count("began") === count)
      }
      const refused = yield* Effect.flip((yield* session("ada")).callTool("who"))
      expect(refused).toMatchObject({ reason: { error: { data: { reason: "TooManyConnections" } } } })
      expect(refused.message).toContain("This client uses 3 connections to the remote server")
      expect(textOf(yield* (yield* session("bob")).callTool("who"))).toBe("far bob")
      // The one that Bob does not use gives way, and not one of Ada.
      expect(textOf(yield* (yield* session("bob")).callTool("who"))).toBe("far bob")
      expect(made).toEqual(["ada", "ada", "ada", "bob", "bob"])
    }))

  it.live("of a client that has its share replace an unused one of its own", () =>
    Effect.gen(function*() {
      const { made, near, open } = yield* passing(Proxy.perSession, { maxConnections: 4 })
      for (const principal of ["bob", "ada", "ada", "ada", "ada"]) {
        yield* (yield* connect(near, "2025-11-25", { principal })).callTool("who")
      }
      expect(made).toEqual(["bob", "ada", "ada", "ada", "ada"])
      while ((yield* open) > 4) yield* Effect.sleep(5)
      expect(yield* open).toBe(4)
    }))
})

// ---- calls that wait for the answers of stateless callers

const fail = { inputRequests: "fail" } as const

/** A server that accepts the response to its question before it has asked. */
const solicited = McpServer.layer(
  { name: "solicited", version: "1" },
  Tool.layer(Tool.make("early"), () =>
    Effect.map(
      Elicitation.form("Who?", { name: Schema.String }, { key: "who", acceptUnsolicited: true }),
      ({ action }) => action
    ))
)

/** Calls a tool, and returns what the server requires. */
const required = (client: Client.Client, name: string) =>
  Effect.map(Effect.flip(client.callTool(name, {}, fail)), ({ reason }) => {
    if (reason._tag !== "InputRequired") throw new Error(`unexpected ${reason.message}`)
    return reason.required
  })

const answers = (requestState: string | undefined, inputResponses: object) => ({
  name: "ask",
  arguments: {},
  requestState: requestState!,
  inputResponses: inputResponses as never
})

describe("a parked call", () => {
  it.live("goes on between the rounds, and returns the result of the last one", () =>
    Effect.gen(function*() {
      const log = new Log()
      const { near } = yield* through(remote(log), "2025-11-25")
      const client = yield* connect(near, "2026-07-28", { principal: "ada" }, answering)
      const first = yield* required(client, "ask")
      const [key = ""] = Object.keys(first.inputRequests ?? {})
      const second = yield* Effect.flip(
        client.request(Method.CallTool, answers(first.requestState, { [key]: { action: "decline" } }), fail)
      )
      expect(second.reason._tag).toBe("InputRequired")
      expect(log.lines).toEqual(["ask began", "reserved"])
    }))

  it.live("keeps the keys of a stateless remote server, and is not kept for one", () =>
    Effect.gen(function*() {
      const { near } = yield* through(remote(), "2026-07-28", { limits: { maxWaiting: 0 } })
      const client = yield* connect(near, "2026-07-28", {}, answering)
      expect(Object.keys((yield* required(client, "ask")).inputRequests ?? {})).toEqual(["who"])
      expect(JSON.parse(textOf(yield* client.callTool("ask")))).toHaveLength(2)
    }))

  it.live("2026-07-28 · passes responses on that come with the first request", () =>
    Effect.gen(function*() {
      const { near } = yield* through(solicited, "2026-07-28")
      const client = yield* connect(near, "2026-07-28", {}, answering)
      const inputResponses = { who: { action: "decline" } } as const
      const result = yield* client.request(Method.CallTool, { name: "early", arguments: {}, inputResponses }, fail)
      expect(textOf(result)).toBe("decline")
    }))

  it.live("ends after waitTimeout, and is cancelled at the remote server", () =>
    Effect.gen(function*() {
      const log = new Log()
      const { near } = yield* through(remote(log), "2025-11-25", { limits: { waitTimeout: 1 } })
      const client = yield* connect(near, "2026-07-28", {}, answering)
      const first = yield* required(client, "ask")
      yield* until(() => log.count("ask interrupted") === 1)
      const [key = ""] = Object.keys(first.inputRequests ?? {})
      const late = client.request(Method.CallTool, answers(first.requestState, { [key]: { action: "decline" } }), fail)
      expect(yield* Effect.flip(late)).toMatchObject({
        reason: { error: { reason: "InternalError", data: { reason: "CallEnded" } } }
      })
    }))

  it.live("is refused its question at the bounds (maxWaiting, and a tenth of it for each client)", () =>
    Effect.gen(function*() {
      for (
        const [maxWaiting, bound] of [
          [1, "maxWaiting"],
          [10, "a tenth of maxWaiting"]
        ] as const
      ) {
        const far = yield* build(remote())
        const connections = Proxy.perPrincipal(() => source(far, "2025-11-25"))
        const proxy = Proxy.layer(source(far, "2025-11-25"), { limits: { maxWaiting }, connections })
        const near = yield* build(McpServer.layer({ name: "near", version: "1" }, proxy))
        const ada = yield* connect(near, "2026-07-28", { principal: "ada" }, answering)
        const bob = yield* connect(near, "2026-07-28", { principal: "bob" }, answering)
        yield* required(ada, "ask")
        const second = yield* (maxWaiting === 1 ? bob : ada).callTool("ask", {}, fail)
        expect(second).toMatchObject({ isError: true })
        expect(textOf(second)).toContain(`(${bound})`)
        if (maxWaiting > 1) yield* required(bob, "sample")
      }
    }))

  /** Connects stateless clients over HTTP, each from its address. The connection to the remote server is HTTP too. */
  const overHttp = (options: Proxy.Options) =>
    Effect.gen(function*() {
      const far = yield* httpTo(yield* build(remote()))
      const source = Client.make(far(undefined), { revisions: ["2025-11-25"] })
      const near = yield* httpTo(
        yield* build(McpServer.layer({ name: "near", version: "1" }, Proxy.layer(source, options)))
      )
      return (address: string | undefined) =>
        Effect.provide(Client.make(near(address), { revisions: ["2026-07-28"], cache: false }), answering)
    })

  it.live("counts for the first 64 bits of the IPv6 address of an anonymous client", () =>
    Effect.gen(function*() {
      const connectFrom = yield* overHttp({ limits: { maxWaiting: 10 } })
      yield* required(yield* connectFrom("2001:db8:1:2::1"), "sample")
      const neighbour = yield* connectFrom("2001:DB8:1:2:ffff::9")
      expect(textOf(yield* neighbour.callTool("ask", {}, fail))).toContain("(a tenth of maxWaiting)")
      yield* required(yield* connectFrom("2001:db8:1:3::1"), "sample")
      yield* required(yield* connectFrom("192.0.2.1"), "sample")
      const mapped = yield* connectFrom("::ffff:192.0.2.1")
      expect(textOf(yield* mapped.callTool("ask", {}, fail))).toContain("(a tenth of maxWaiting)")
    }))

  it.live("counts for no client where neither principal nor address is known", () =>
    Effect.gen(function*() {
      const connectFrom = yield* overHttp({ limits: { maxWaiting: 2 } })
      yield* required(yield* connectFrom(undefined), "sample")
      yield* required(yield* connectFrom(undefined), "sample")
      const third = yield* connectFrom(undefined)
      expect(textOf(yield* third.callTool("ask", {}, fail))).toContain("(maxWaiting)")
    }))

  it.live("no longer counts after its end", () =>
    Effect.gen(function*() {
      const { near } = yield* through(remote(), "2025-11-25", { limits: { maxWaiting: 10 } })
      const client = yield* connect(near, "2026-07-28", { principal: "ada" }, answering)
      for (let call = 0; call < 3; call++) expect(textOf(yield* client.callTool("sample"))).toBe("Tea")
      yield* required(client, "sample")
    }))

  it.live("ends with the proxy", () =>
    Effect.gen(function*() {
      const far = yield* build(remote())
      const scope = yield* Scope.make()
      const near = yield* Scope.provide(
        build(McpServer.layer({ name: "near", version: "1" }, Proxy.layer(source(far, "2025-11-25")))),
        scope
      )
      const client = yield* Scope.provide(connect(near, "2026-07-28", {}, answering), scope)
      yield* required(client, "ask")
      expect((yield* far.server.inspect).sessions).toMatchObject([{ requests: [{ method: "tools/call" }] }])
      yield* Scope.close(scope, Exit.void)
      expect((yield* far.server.inspect).sessions).toEqual([])
    }))
})
