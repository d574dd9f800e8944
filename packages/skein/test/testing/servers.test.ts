/** The servers of `skein/testing`, each as a test of a client uses it. */
import { describe, expect, expectTypeOf, it } from "@effect/vitest"
import type * as CoreAuthorization from "@skein/testing/AuthorizationScenario"
import type * as CoreFaulty from "@skein/testing/FaultyServer"
import type * as CoreFaultyAuthorization from "@skein/testing/FaultyAuthorizationServer"
import type * as CoreScenario from "@skein/testing/Scenario"
import type * as CoreScripted from "@skein/testing/ScriptedServer"
import type * as CoreScriptedHttp from "@skein/testing/ScriptedHttpServer"
import { AsyncClient, ClientError, TransportError } from "skein/client"
import type { Exchange, Fault, FaultyHttpServer, Opened } from "skein/testing"
import type * as Testing from "skein/testing"
import {
  AuthorizationScenario,
  FaultyAuthorizationServer,
  FaultyServer,
  RawServer,
  Scenario,
  ScriptedHttpServer,
  ScriptedServer
} from "skein/testing"

const failureOf = (promise: Promise<unknown>): Promise<unknown> => promise.then(() => "no error", (error) => error)

describe("FaultyServer", () => {
  it("cuts a response, and counts the calls that it carried out", async () => {
    await using server = await FaultyServer.http({
      revision: "2026-07-28",
      faults: [Scenario.rule("request", Scenario.cut(100), { nth: 1 })]
    })
    await using client = await AsyncClient.connect(server.url)
    expect(await client.callTool("echo", { key: "first" })).toMatchObject({ content: [{ text: "first" }] })
    const error = await failureOf(client.callTool("echo", { key: "second" }))
    expect(error).toBeInstanceOf(ClientError)
    expect(error).toMatchObject({ reason: { _tag: "Closed" } })
    expect(server.callCount("second")).toBe(1)
    expect(server.calls.map(({ key, tool }) => [key, tool])).toEqual([["first", "echo"], ["second", "echo"]])
    expect(server.requestCount).toBeGreaterThan(2)
  })

  it("cuts a response of a process, and counts the calls of all processes", async () => {
    await using server = await FaultyServer.stdio({
      faults: [Scenario.rule("request", Scenario.cut(17), { nth: 1 })]
    })
    const { args, command } = server
    expect([await server.startCount(), await server.calls()]).toEqual([0, []])
    for (const started of [1, 2]) {
      await using client = await AsyncClient.connect({ command, args, stderr: "ignore" }, { reconnect: false })
      expect(await client.callTool("echo", { key: "first" })).toMatchObject({ content: [{ text: "first" }] })
      expect(await failureOf(client.callTool("echo", { key: "second" }))).toMatchObject({ reason: { _tag: "Closed" } })
      expect(await server.callCount("second")).toBe(started)
      expect(await server.startCount()).toBe(started)
    }
    expect((await server.calls()).map(({ key, tool }) => [key, tool])).toEqual([
      ["first", "echo"],
      ["second", "echo"],
      ["first", "echo"],
      ["second", "echo"]
    ])
  }, 60_000)

  it("stops, restarts, forgets its sessions and notifies its clients", async () => {
    await using server = await FaultyServer.http({ faults: [] })
    await using client = await AsyncClient.connect(server.url, { reconnect: { initialDelay: 1 } })
    expect(server.sessionCount).toBe(1)
    await expect.poll(() => server.streamCount).toBe(1)
    const notified = client.notifications()[Symbol.asyncIterator]()
    const next = notified.next()
    // The stream of notifications may be open before its reader.
    const isNotified = next.then(() => true)
    await expect.poll(async () => {
      await server.notify("notifications/tools/list_changed")
      return Promise.race([isNotified, new Promise((resolve) => setImmediate(() => resolve(false)))])
    }).toBe(true)
    expect(await next).toMatchObject({ value: { _tag: "ToolListChanged" } })
    await server.forgetSessions()
    expect(await client.callTool("echo", { key: "a" })).toMatchObject({ content: [{ text: "a" }] })
    expect(server.sessionCount).toBe(2)
    await server.restart()
    expect(server.restartCount).toBe(1)
    // A list may be requested again, and a call of a tool may not.
    expect((await client.listTools()).map(({ name }) => name)).toContain("echo")
    await server.stop()
    expect(server.openConnections).toBe(0)
    await server.start()
    await server.closeConnections("reset")
  })

  it("is stopped by close, which may be called again", async () => {
    const server = await FaultyServer.http({ faults: [] })
    expect(server.close()).toBe(server.close())
    await server.close()
    expect(await failureOf(AsyncClient.connect(server.url))).toMatchObject({ reason: { _tag: "ConnectionFailed" } })
  })
})

describe("FaultyAuthorizationServer", () => {
  it("refuses requests without a token, and has faults of its endpoints", async () => {
    await using server = await FaultyAuthorizationServer.make({
      faults: [
        AuthorizationScenario.rule("token", AuthorizationScenario.respond(503, { error: "busy" })),
        AuthorizationScenario.rule("server metadata", AuthorizationScenario.members({ extra: "{issuer}" }, ["issuer"]))
      ]
    })
    expect(await failureOf(AsyncClient.connect(server.url))).toMatchObject({ reason: { _tag: "Unauthorized" } })
    expect(server.requests).toEqual(["server"])
    const metadata = await fetch(`${server.issuer}/.well-known/oauth-authorization-server`)
    expect(await metadata.json()).toMatchObject({ extra: server.issuer })
    const refused = await fetch(`${server.issuer}/token`, { method: "POST", body: new URLSearchParams({ a: "b" }) })
    expect([refused.status, await refused.json()]).toEqual([503, { error: "busy" }])
    expect(server.requestCount("token")).toBe(1)
    server.use([])
    expect(server.requestCount("token")).toBe(1)
    server.expireTokens()
    expect([server.otherRequestCount, server.reuseCount, server.calls, server.secrets]).toEqual([0, 0, [], []])
  })
})

describe("ScriptedServer", () => {
  it("replies as its script decides, and records the messages of the client", async () => {
    const server = ScriptedServer.make(
      ScriptedServer.handshake("2025-11-25", ({ method }, { notify }) => {
        if (method !== "tools/call") return ScriptedServer.methodNotFound(method)
        notify("notifications/message", { level: "info", data: "called" })
        return ScriptedServer.success({ content: [{ type: "text", text: "hello" }] })
      })
    )
    const logs: Array<unknown> = []
    await using client = await AsyncClient.connect(server.transport, { onLog: ({ data }) => logs.push(data) })
    expect(await client.callTool("greet", { name: "Ada" })).toMatchObject({ content: [{ text: "hello" }] })
    expect(server.requests("tools/call")).toMatchObject([{ params: { name: "greet", arguments: { name: "Ada" } } }])
    expect(server.methods).toContain("notifications/initialized")
    expect(server.notifications("notifications/initialized")).toHaveLength(1)
    await expect.poll(() => logs).toEqual(["called"])
    server.send({ _tag: "Request", id: 7, method: "ping", params: undefined })
    await expect.poll(() => server.responses).toMatchObject([{ _tag: "Success", id: 7 }])
    server.sendText("not JSON")
    server.reportGap()
    expect(await failureOf(client.listPrompts())).toMatchObject({
      reason: { _tag: "ProtocolError", error: { reason: "MethodNotFound" } }
    })
  })

  it("fails requests, loses connections and refuses new ones", async () => {
    const script = () => ScriptedServer.failure(-32000, "busy", { again: true })
    const server = ScriptedServer.make(ScriptedServer.handshake("2026-07-28", script), { reconnects: true })
    const policy = { initialDelay: 1, maxAttempts: 1 }
    await using client = await AsyncClient.connect(server.transport, { reconnect: policy, limits: { maxRetries: 0 } })
    expect(await failureOf(client.callTool("a"))).toMatchObject({ reason: { error: { data: { again: true } } } })
    const refused = new TransportError({ reason: { _tag: "MessageRejected", message: "no", status: 500 } })
    server.onRequest = () => refused
    expect(await failureOf(client.callTool("a"))).toMatchObject({ reason: { _tag: "HttpError", status: 500 } })
    server.onRequest = () => undefined
    server.onConnect = () => ScriptedServer.lost("gone")
    server.lose()
    expect(await client.ended()).toMatchObject({ _tag: "Lost" })
    expect([server.attempts, server.connections, server.openConnections, server.maxOpenConnections]).toEqual([
      2,
      1,
      0,
      1
    ])
  })

  it("ends a connection in order", async () => {
    const server = ScriptedServer.make(ScriptedServer.handshake("2026-07-28", () => "disconnect"))
    await using client = await AsyncClient.connect(server.transport)
    expect(await failureOf(client.callTool("a"))).toMatchObject({ reason: { _tag: "Closed" } })
    await using other = await AsyncClient.connect(server.transport)
    server.disconnect()
    expect(await other.ended()).toEqual({ _tag: "ClosedByPeer" })
  })
})

describe("servers of plain Node", () => {
  it("ScriptedHttpServer responds as its script decides", async () => {
    await using server = await ScriptedHttpServer.make<{ readonly id?: number }>(
      ScriptedHttpServer.session((exchange) => {
        const progress = { jsonrpc: "2.0", method: "notifications/message", params: { level: "info", data: 1 } }
        exchange.openStream(ScriptedHttpServer.event(progress, "e1"))
        const result = { content: [], structuredContent: { method: exchange.method } }
        exchange.end(ScriptedHttpServer.event({ jsonrpc: "2.0", id: exchange.json.id, result }))
      }, { id: "mine" })
    )
    await using client = await AsyncClient.connect(server.url, {
      revisions: ["2025-11-25"],
      enforceCapabilities: false
    })
    expect(await client.callTool("a")).toMatchObject({ structuredContent: { method: "POST" } })
    expect(server.byMethod("POST").map(({ headers }) => headers["mcp-session-id"])).toContain("mine")
    expect(server.exchanges.every(({ closedByClient }) => !closedByClient)).toBe(true)
  })

  it("RawServer writes bytes, and waits for its connections", async () => {
    await using http = await RawServer.http(async (request, response) => {
      const body = await RawServer.readBody(request)
      response.writeHead(503).end(body)
    })
    const answer = await fetch(http.url, { method: "POST", body: "hello", headers: { connection: "close" } })
    expect([answer.status, await answer.text()]).toEqual([503, "hello"])
    await http.closed()
    expect(http.sockets).toHaveLength(1)
    await using tcp = await RawServer.tcp((socket) =>
      socket.end("HTTP/1.1 418 I'm a teapot\r\ncontent-length: 0\r\n\r\n")
    )
    expect((await fetch(tcp.url)).status).toBe(418)
  })
})

describe("the types", () => {
  it("are those of @skein/testing without Effect", () => {
    expectTypeOf<Fault>().toEqualTypeOf<CoreScenario.Fault>()
    expectTypeOf<Testing.Scenario>().toEqualTypeOf<CoreScenario.Scenario>()
    expectTypeOf<Testing.FaultyExchange>().toEqualTypeOf<CoreScenario.On>()
    expectTypeOf<Testing.AuthorizationEndpoint>().toEqualTypeOf<CoreAuthorization.Endpoint>()
    expectTypeOf<Testing.AuthorizationScenario>().toExtend<CoreAuthorization.AuthorizationScenario>()
    expectTypeOf<CoreAuthorization.Fault["_tag"]>().toEqualTypeOf<Testing.AuthorizationFault["_tag"]>()
    expectTypeOf<keyof CoreFaulty.HttpServer>().toEqualTypeOf<Exclude<keyof FaultyHttpServer, keyof Opened>>()
    expectTypeOf<keyof CoreFaultyAuthorization.FaultyAuthorizationServer>()
      .toEqualTypeOf<Exclude<keyof Testing.FaultyAuthorizationServer, keyof Opened>>()
    // Tests read the messages by their kind and method.
    expectTypeOf<keyof CoreScripted.ScriptedServer>().toEqualTypeOf<keyof Testing.ScriptedServer | "received">()
    expectTypeOf<CoreScriptedHttp.Exchange<string>>().toExtend<Exchange<string>>()
    expectTypeOf<keyof CoreScriptedHttp.Exchange>().toEqualTypeOf<keyof Exchange>()
    // @ts-expect-error: no such status
    Scenario.rule("request", { _tag: "Status", status: 299, body: "empty", handled: false })
    // @ts-expect-error: no such endpoint
    AuthorizationScenario.rule("tokens", { _tag: "Cut" })
  })
})
