/**
 * Skein's client when an official server restarts, when the network fails, and when it is given the result of an
 * earlier serverProfile.
 */
import type { ServerProfile } from "@skein/client/ServerProfile"
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest"
import { textOf } from "../interactiveClientTests.ts"
import { eventually } from "../eventually.ts"
import * as State from "../fixtures/interactiveState.ts"
import * as SdkV1Interactive from "../fixtures/sdkV1Interactive.ts"
import { type Configuration, configurations } from "../servers/configurations.ts"
import type { HttpServer } from "../servers/httpServer.ts"
import * as SdkV1 from "../servers/sdkV1.ts"
import { type TcpProxy, tcpProxy } from "../tcpProxy.ts"
import * as Skein from "../skeinClient.ts"

const find = (server: Configuration["server"], name: string): Configuration =>
  configurations.find((one) => one.server === server && one.name === name)!
const v1 = find("sdk-v1", "sessions")
const v2 = find("sdk-v2", "sessions")
const v2Stateless = find("sdk-v2", "stateless")
const sse = find("sdk-v1", "HTTP+SSE")
const effectAi = find("effect-ai", "one endpoint")

/** SDK v1 with another HTTP mode. */
const v1With = (mode: SdkV1.HttpMode): Configuration => ({
  ...v1,
  interactive: (state: State.InteractiveState) => SdkV1.streamable(() => SdkV1Interactive.make(state), mode)
})
const unknownSession400 = v1With("unknownSession400")
const exampleStore = v1With("exampleStore")

const sessionOf = ({ requests }: HttpServer) => requests.at(-1)!.headers["mcp-session-id"]
const resumed = ({ requests }: HttpServer) => requests.filter(({ headers }) => headers["last-event-id"] !== undefined)

const fastReconnection = { reconnect: { initialDelay: "10 millis" } } as const

describe.each(
  [
    ["sdk-v1", v1, "node"],
    ["sdk-v1, rejecting unknown sessions with 400", unknownSession400, "node"],
    ["sdk-v1 over HTTP+SSE", sse, "fetch"],
    ["sdk-v2", v2, "fetch"],
    ["sdk-v2, stateless", v2Stateless, "node"],
    ["effect-ai, with sessions", effectAi, "fetch"]
  ] as const
)("%s", (_, configuration, httpClient) => {
  const state = State.make()
  const revision = configuration === v2Stateless ? "2026-07-28" : "2025-11-25"
  let server: HttpServer
  let client: Skein.InteractiveSkeinClient
  beforeEach(async () => {
    server = await configuration.interactive(state)
    client = await Skein.connectInteractive(server.address, {
      ...Skein.onlyRevision(revision),
      ...fastReconnection,
      httpClient
    })
  })
  afterEach(async () => {
    await client.close()
    await server.close()
  })

  it("reconnects to a restarted server", async () => {
    expect(textOf(await client.call("model", {}))).toBe("Ada said")
    const before = sessionOf(server)
    await server.restart()
    // A tool call is retried only if the server has certainly not executed it.
    await eventually(async () => expect(textOf(await client.call("model", {}))).toBe("Ada said"))
    expect(client.revision).toBe(revision)
    if (before !== undefined) expect(sessionOf(server)).not.toBe(before)
    if (revision === "2025-11-25") expect(client.statuses).toEqual(["Connected", "Reconnecting", "Connected"])
  })

  it("renews subscriptions after a restart, and reports the gap", async () => {
    const watching = client.watch({ uris: ["test://watched"] })
    const tags = () => watching.changes.map(({ _tag }) => _tag)
    if (configuration === effectAi) {
      return eventually(() => expect(watching.failure).toMatchObject({ reason: { _tag: "Unsupported" } }))
    }
    await eventually(() => expect(tags()).toEqual(["Subscribed"]))
    await server.restart()
    await eventually(() => expect(tags()).toEqual(["Subscribed", "Gap", "Subscribed"]))
    await client.call("touch", { uri: "test://watched" })
    await eventually(() => expect(tags()).toEqual(["Subscribed", "Gap", "Subscribed", "ResourceUpdated"]))
    return watching.end()
  })
})

describe("serverProfile", () => {
  const discover = ["POST", "server/discover"]
  const post = ["POST", undefined]
  const get = ["GET", undefined]
  it.each(
    [
      ["sdk-v1", v1, [[...discover, 400], [...post, 200]]],
      ["sdk-v1 over HTTP+SSE", sse, [[...discover, 404], [...post, 404], [...get, 200], [...post, 202]]],
      ["sdk-v2", v2, [[...discover, 400], [...post, 200]]],
      ["sdk-v2, stateless", v2Stateless, [[...discover, 200]]],
      ["effect-ai", effectAi, [[...discover, 200]]]
    ] as const
  )("%s: sends as few requests as possible", async (_, configuration, opening) => {
    const server = await configuration.interactive(State.make())
    const client = await Skein.connectInteractive(server.address)
    const sent = server.requests.map(({ headers, status, verb }) => [verb, headers["mcp-method"], status])
    // Requests after the handshake may follow at any time.
    expect(sent.slice(0, opening.length)).toEqual(opening)
    await client.run(client.client.ping())
    if (configuration !== v2Stateless && configuration !== effectAi) {
      expect(server.requests.at(-1)!.headers["mcp-protocol-version"]).toBe("2025-11-25")
    }
    await client.close()
    await server.close()
  })
})

describe("an earlier serverProfile", () => {
  it.each(
    [
      // `initialize`. The notification after it may follow at any time.
      ["sdk-v1", v1, "2025-11-25", ["POST"]],
      ["sdk-v1 over HTTP+SSE", sse, "2025-11-25", ["GET", "POST"]],
      ["sdk-v2, stateless", v2Stateless, "2026-07-28", []],
      ["effect-ai", effectAi, "2026-07-28", []]
    ] as const
  )("%s: is not detected again", async (_, configuration, revision, opening) => {
    const server = await configuration.interactive(State.make())
    const first = await Skein.connectInteractive(server.address)
    const serverProfile = JSON.parse(JSON.stringify(first.client.serverProfile)) as ServerProfile
    await first.close()
    expect(serverProfile).toMatchObject({ revision, httpMode: configuration.variant })
    const before = server.requests.length
    const second = await Skein.connectInteractive(server.address, { serverProfile })
    const sent = server.requests.slice(before).map(({ verb }) => verb)
    expect(sent.slice(0, Math.max(1, opening.length))).toEqual(opening)
    expect(textOf(await second.call("model", {}))).toBe("Ada said")
    expect(second.client.serverProfile).toMatchObject({ revision, info: { name: configuration.server } })
    await second.close()
    await server.close()
  })

  it("discards a stored profile if the server has changed", async () => {
    const old = await v1.interactive(State.make())
    const first = await Skein.connectInteractive(old.address)
    const serverProfile = first.client.serverProfile
    await first.close()
    await old.close()
    const server = await v2Stateless.interactive(State.make())
    const client = await Skein.connectInteractive(server.address, { serverProfile })
    expect(client.revision).toBe("2026-07-28")
    expect(textOf(await client.call("model", {}))).toBe("Ada said")
    await client.close()
    await server.close()
  })
})

describe.each(
  [["sdk-v1", v1], ["sdk-v1, example event store", exampleStore], ["sdk-v2", v2]] as const
)("network failures · %s", (name, configuration) => {
  const state = State.make()
  let server: HttpServer
  let proxy: TcpProxy
  beforeAll(async () => {
    server = await configuration.interactive(state)
    proxy = await tcpProxy(server.port)
  })
  afterAll(async () => {
    await proxy.close()
    await server.close()
  })

  describe.each(["node", "fetch"] as const)("%s", (httpClient) => {
    it.each(["2025-03-26", "2025-06-18", "2025-11-25"] as const)(
      "%s · resumes a call after its connection was cut, without missing an event",
      async (revision) => {
        const { transport, url } = server.address
        const client = await Skein.connectInteractive({ transport, url: proxy.proxied(url) }, {
          ...Skein.onlyRevision(revision),
          httpClient
        })
        const other = await Skein.connectInteractive(server.address, { httpClient })
        const progress: Array<number> = []
        let reconnect = () => {}
        const call = client.call("steps", {}, {
          onProgress: (note) => {
            if (progress.push(note.progress) === 3) reconnect = proxy.cut()
          }
        })
        await eventually(() => expect(progress).toEqual([1, 2, 3]))
        // "Disconnection SHOULD NOT be interpreted as the client cancelling its request."
        await eventually(() => expect(state.waiting.size).toBe(1))
        await other.call("release", {})
        reconnect()
        expect(textOf(await call)).toBe("four steps")
        // The example store returns the events of one millisecond in any order.
        if (name !== "sdk-v1, example event store") expect(progress).toEqual([1, 2, 3, 4])
        expect(resumed(server).map(({ status }) => status)).toContain(200)
        expect(client.statuses).toEqual(["Connected"])
        await client.close()
        await other.close()
        await eventually(() => expect(server.sessions!()).toBe(0))
      }
    )
  })

  if (configuration === exampleStore) return

  it("2025-11-25 · resumes a stream that the server has closed before the response", async () => {
    const before = resumed(server).length
    const client = await Skein.connectInteractive(server.address)
    expect(textOf(await client.call("late", {}))).toBe("late")
    expect(resumed(server)).toHaveLength(before + 1)
    await client.close()
  })

  it("2025-11-25 · receives changes that happened while the standalone stream was cut", async () => {
    const { transport, url } = server.address
    const client = await Skein.connectInteractive({ transport, url: proxy.proxied(url) })
    const other = await Skein.connectInteractive(server.address)
    const watching = client.watch({ uris: ["test://watched"] })
    const tags = () => watching.changes.map(({ _tag }) => _tag)
    await eventually(() => expect(tags()).toEqual(["Subscribed"]))
    await other.call("touch", { uri: "test://watched" })
    await client.call("touch", { uri: "test://watched" })
    await eventually(() => expect(tags()).toEqual(["Subscribed", "ResourceUpdated", "ResourceUpdated"]))
    const reconnect = proxy.cut()
    await other.call("touch", { uri: "test://watched" })
    reconnect()
    await eventually(() => expect(tags().slice(3)).toEqual(["ResourceUpdated"]))
    await watching.end()
    await client.close()
    await other.close()
  })
})
