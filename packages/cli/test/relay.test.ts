/** The relay of `skein dev` between a host and servers that follow each other. */
import { assert, describe, it } from "@effect/vitest"
import * as JsonRpc from "@skein/protocol/JsonRpc"
import { Relay } from "../src/internal/develop/relay.ts"

/** A relay, with everything that the host and the present server have received, as text. */
const makeRelay = (maxWaiting = 1_000) => {
  const toHost: Array<string> = []
  const logs: Array<string> = []
  const relay = new Relay(
    { send: (message) => toHost.push(JsonRpc.encode(message)) },
    { log: (line) => logs.push(line), maxWaiting }
  )
  let toServer: Array<string> = []
  const connect = (): void => {
    toServer = []
    const received = toServer
    relay.connected({ send: (message) => received.push(JsonRpc.encode(message)) })
  }
  const parse = (text: string) => JSON.parse(text) as Record<string, any>
  const host = (message: object): void => relay.fromHost(JsonRpc.parse({ jsonrpc: "2.0", ...message }))
  const server = (message: object): void => relay.fromServer(JsonRpc.parse({ jsonrpc: "2.0", ...message }))
  /** Returns the messages since the last call. */
  const takeHost = () => toHost.splice(0).map(parse)
  const takeServer = () => toServer.splice(0).map(parse)
  return { connect, host, logs, relay, server, takeHost, takeServer }
}

const initialize = { id: 1, method: "initialize", params: { protocolVersion: "2025-06-18", capabilities: {} } }
const initialized = { method: "notifications/initialized" }
const result = { protocolVersion: "2025-06-18", capabilities: { tools: {}, logging: {} }, serverInfo: {} }

/** A relay whose host has a session with the first server. */
const session = (maxWaiting?: number) => {
  const made = makeRelay(maxWaiting)
  made.connect()
  made.host(initialize)
  made.server({ id: 1, result })
  made.host(initialized)
  made.takeHost()
  made.takeServer()
  return made
}

/** Answers the handshake that the relay repeats. */
const greet = ({ server, takeServer }: ReturnType<typeof makeRelay>, answer: object = { result }): void => {
  const [request] = takeServer()
  assert.strictEqual(request?.["method"], "initialize")
  server({ id: request!["id"], ...answer })
}

describe("the relay of skein dev", () => {
  it("announces changes of the lists that the server has, in its capabilities", () => {
    const { connect, host, server, takeHost } = makeRelay()
    connect()
    host(initialize)
    server({ id: 1, result })
    const [answer] = takeHost()
    assert.deepStrictEqual(answer!["result"].capabilities, { tools: { listChanged: true }, logging: {} })
  })

  it("repeats the handshake, the log level and the subscriptions at a new server, and hides their answers", () => {
    const made = session()
    const { connect, host, relay, server, takeHost, takeServer } = made
    host({ id: 2, method: "logging/setLevel", params: { level: "debug" } })
    host({ id: 3, method: "resources/subscribe", params: { uri: "tea://a" } })
    host({ id: 4, method: "resources/subscribe", params: { uri: "tea://b" } })
    host({ id: 5, method: "resources/unsubscribe", params: { uri: "tea://a" } })
    for (const id of [2, 3, 4, 5]) server({ id, result: {} })
    takeHost()
    relay.starting("a.ts changed")
    connect()
    assert.isDefined(relay.openHandshake)
    greet(made)
    assert.isUndefined(relay.openHandshake)
    assert.isTrue(relay.isRunning)
    const repeated = takeServer()
    assert.deepStrictEqual(repeated.map(({ method, params }) => [method, params]), [
      ["notifications/initialized", undefined],
      ["logging/setLevel", { level: "debug" }],
      ["resources/subscribe", { uri: "tea://b" }]
    ])
    for (const { id } of repeated) if (id !== undefined) server({ id, result: {} })
    assert.deepStrictEqual(takeHost().map(({ method }) => method), ["notifications/tools/list_changed"])
  })

  it("reports a handshake of the host as open until the server answers it, and then answers in its place", () => {
    const { connect, host, relay, server, takeHost } = makeRelay()
    connect()
    host({ id: 1, method: "ping" })
    assert.isUndefined(relay.openHandshake)
    host({ id: 2, method: "server/discover" })
    const first = relay.openHandshake
    assert.isDefined(first)
    server({ id: 2, error: { code: -32601, message: "no" } })
    assert.isUndefined(relay.openHandshake)
    host(initialize)
    const second = relay.openHandshake
    assert.isTrue(second !== undefined && second !== first)
    takeHost()
    relay.failed("it serves no stdio")
    assert.isUndefined(relay.openHandshake)
    assert.deepInclude(takeHost().find(({ id }) => id === 1 && id !== undefined)?.["result"], {
      instructions: "The server does not run: it serves no stdio"
    })
  })

  it("fails calls in progress at a restart, and sends reads to the new server", () => {
    const made = session()
    const { connect, host, relay, takeHost, takeServer } = made
    host({ id: 2, method: "tools/call", params: { name: "t" } })
    host({ id: 3, method: "tools/list" })
    relay.starting("a.ts changed")
    const [failure, ...more] = takeHost()
    assert.strictEqual(failure!["id"], 2)
    assert.match(
      failure!["error"].message,
      /restarted because a\.ts changed, before it answered: send the request again/
    )
    assert.deepStrictEqual(more, [])
    host({ id: 4, method: "tools/call", params: { name: "t" } })
    connect()
    greet(made)
    assert.deepStrictEqual(takeServer().flatMap(({ id }) => id ?? []), [3, 4])
  })

  it("refuses a request beyond maxWaiting while the server starts, and forgets one that is cancelled", () => {
    const { host, relay, takeHost } = session(1)
    relay.starting("a.ts changed")
    host({ id: 2, method: "tools/list" })
    host({ id: 3, method: "tools/list" })
    const [refusal] = takeHost()
    assert.strictEqual(refusal!["id"], 3)
    assert.match(refusal!["error"].message, /1 requests wait for it already/)
    host({ method: "notifications/cancelled", params: { requestId: 2 } })
    assert.isFalse(relay.isBusy)
  })

  it("gives requests of the server ids of its own, and cancels them when the server ends", () => {
    const made = session()
    const { connect, host, relay, server, takeHost, takeServer } = made
    server({ id: 0, method: "roots/list" })
    const [old] = takeHost()
    relay.starting("a.ts changed")
    const [cancelled] = takeHost()
    assert.deepInclude(cancelled!["params"], { requestId: old!["id"] })
    connect()
    greet(made)
    takeServer()
    takeHost()
    server({ id: 0, method: "roots/list" })
    const [request] = takeHost()
    assert.notStrictEqual(request!["id"], old!["id"])
    // The answer to the old server does not reach the new one.
    host({ id: old!["id"], result: { roots: [] } })
    assert.deepStrictEqual(takeServer(), [])
    host({ id: request!["id"], result: { roots: [] } })
    assert.deepStrictEqual(takeServer(), [{ jsonrpc: "2.0", id: 0, result: { roots: [] } }])
    server({ id: 1, method: "roots/list" })
    const [last] = takeHost()
    server({ method: "notifications/cancelled", params: { requestId: 1 } })
    assert.deepInclude(takeHost()[0]!["params"], { requestId: last!["id"] })
  })

  it("drops the progress of a request of an old server", () => {
    const { host, server, takeHost, takeServer } = session()
    server({ id: 7, method: "sampling/createMessage", params: { _meta: { progressToken: "p" } } })
    takeHost()
    host({ method: "notifications/progress", params: { progressToken: "p", progress: 1 } })
    host({ method: "notifications/progress", params: { progressToken: "old", progress: 1 } })
    assert.deepStrictEqual(takeServer().map(({ params }) => params.progressToken), ["p"])
  })

  it("answers for a server that does not run, and opens the session at the next one", () => {
    const made = makeRelay()
    const { connect, host, relay, takeHost, takeServer } = made
    connect()
    host(initialize)
    host({ id: 2, method: "tools/call", params: { name: "t" } })
    relay.failed("it exited with code 2")
    const answers = takeHost()
    const [opened, failure] = answers.toSorted((a, b) => a["id"] - b["id"])
    assert.deepInclude(opened!["result"], { protocolVersion: "2025-06-18" })
    assert.match(opened!["result"].instructions, /The server does not run: it exited with code 2/)
    assert.match(failure!["error"].message, /The server ended before it answered: it exited with code 2/)
    host(initialized)
    host({ id: 3, method: "ping" })
    host({ id: 4, method: "logging/setLevel", params: { level: "info" } })
    host({ id: 5, method: "tools/list" })
    host({ id: 6, method: "server/discover" })
    const [ping, level, list, discover] = takeHost()
    assert.deepStrictEqual([ping!["result"], level!["result"]], [{}, {}])
    assert.match(list!["error"].message, /It starts again when a file changes/)
    assert.strictEqual(discover!["error"].code, -32601)
    relay.starting("a.ts changed")
    connect()
    greet(made)
    assert.deepStrictEqual(takeServer().map(({ method }) => method), ["notifications/initialized", "logging/setLevel"])
    assert.deepStrictEqual(takeHost().map(({ method }) => method), [
      "notifications/tools/list_changed",
      "notifications/prompts/list_changed",
      "notifications/resources/list_changed"
    ])
  })

  it("reports changed capabilities and another revision, and fails for a server that refuses the session", () => {
    const made = session()
    const { connect, logs, relay } = made
    for (
      const [answer, log] of [
        [{ result: { ...result, capabilities: { prompts: {} } } }, /capabilities of the server have changed/],
        [{ result: { ...result, protocolVersion: "2024-11-05" } }, /speaks 2024-11-05, and the session 2025-06-18/]
      ] as const
    ) {
      relay.starting("a.ts changed")
      connect()
      greet(made, answer)
      assert.match(logs.at(-1)!, log)
    }
    relay.starting("a.ts changed")
    connect()
    greet(made, { error: { code: -32000, message: "closed" } })
    made.takeHost()
    made.host({ id: 9, method: "tools/list" })
    assert.match(made.takeHost()[0]!["error"].message, /it refused the session: closed/)
  })

  it("2026-07-28 · opens the streams of subscriptions/listen at a new server, and announces the lists on them", () => {
    const { connect, host, relay, server, takeHost, takeServer } = makeRelay()
    connect()
    host({ id: "l", method: "subscriptions/listen", params: { notifications: { toolsListChanged: true } } })
    const acknowledged = {
      method: "notifications/subscriptions/acknowledged",
      params: { _meta: { "io.modelcontextprotocol/subscriptionId": "l" }, notifications: {} }
    }
    server(acknowledged)
    assert.strictEqual(takeHost().length, 1)
    relay.starting("a.ts changed")
    assert.deepStrictEqual(takeHost(), [])
    connect()
    assert.deepStrictEqual(takeServer().map(({ method }) => method), ["subscriptions/listen"])
    server(acknowledged)
    const [change, ...more] = takeHost()
    assert.strictEqual(change!["method"], "notifications/tools/list_changed")
    assert.deepStrictEqual(change!["params"]._meta, { "io.modelcontextprotocol/subscriptionId": "l" })
    assert.deepStrictEqual(more, [])
    host({ method: "notifications/cancelled", params: { requestId: "l" } })
    relay.starting("a.ts changed")
    takeServer()
    connect()
    assert.deepStrictEqual(takeServer(), [])
  })

  it("answers messages that are not valid, and reports those of the server", () => {
    const { logs, relay, takeHost } = session()
    relay.fromHost(JsonRpc.parseText("{"))
    assert.strictEqual(takeHost()[0]!["error"].code, -32700)
    relay.fromServer(JsonRpc.parseText("Listening…"))
    assert.match(logs.at(-1)!, /The server wrote a line that is not a message/)
    assert.deepStrictEqual(takeHost(), [])
  })
})
