/**
 * What our client does when a server of others loses what it knew, when the network between them breaks, and when it is told
 * beforehand what it would find out.
 */
import type { ServerProfile } from "@skein/client/ServerProfile"
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest"
import { textOf } from "../conversations.ts"
import { eventually } from "../eventually.ts"
import * as Board from "../fixtures/board.ts"
import * as SdkV1Talk from "../fixtures/sdk-v1-talk.ts"
import { type Way, ways } from "../hosts/all.ts"
import type { Host } from "../hosts/host.ts"
import * as SdkV1 from "../hosts/sdk-v1.ts"
import { type Relay, relay } from "../relay.ts"
import * as Skein from "../skein-client.ts"

const of = (server: Way["server"], name: string): Way => ways.find((one) => one.server === server && one.way === name)!
const v1 = of("sdk-v1", "sessions")
const v2 = of("sdk-v2", "sessions")
const v2Lone = of("sdk-v2", "a server for each request")
const sse = of("sdk-v1", "HTTP+SSE")
const effectAi = of("effect-ai", "one endpoint")

/** What is another in its `talk` alone. */
const served = (way: SdkV1.Way): Way => ({
  ...v1,
  talk: (board: Board.Board) => SdkV1.streamable(() => SdkV1Talk.make(board), way)
})
const refusing = served("refusing")
const example = served("example")

const sessionOf = ({ seen }: Host) => seen.at(-1)!.headers["mcp-session-id"]
const resumed = ({ seen }: Host) => seen.filter(({ headers }) => headers["last-event-id"] !== undefined)

const soon = { reconnect: { initialDelay: "10 millis" } } as const

describe.each(
  [
    ["sdk-v1", v1, "node"],
    ["sdk-v1 that refuses what it does not know with 400", refusing, "node"],
    ["sdk-v1 over HTTP+SSE", sse, "fetch"],
    ["sdk-v2", v2, "fetch"],
    ["sdk-v2, by requests", v2Lone, "node"],
    ["effect-ai, in a session", effectAi, "fetch"]
  ] as const
)("%s", (_, way, wire) => {
  const board = Board.make()
  const revision = way === v2Lone ? "2026-07-28" : "2025-11-25"
  let host: Host
  let client: Skein.Host
  beforeEach(async () => {
    host = await way.talk(board)
    client = await Skein.talk(host.address, { ...Skein.held(revision), ...soon, wire })
  })
  afterEach(async () => {
    await client.close()
    await host.close()
  })

  it("a server that was started anew on its port is spoken to anew", async () => {
    expect(textOf(await client.call("model", {}))).toBe("Ada said")
    const before = sessionOf(host)
    await host.restart()
    // What a tool does twice may be wrong: only what has surely not been done is asked for again.
    await eventually(async () => expect(textOf(await client.call("model", {}))).toBe("Ada said"))
    expect(client.revision).toBe(revision)
    if (before !== undefined) expect(sessionOf(host)).not.toBe(before)
    if (revision === "2025-11-25") expect(client.statuses).toEqual(["Connected", "Reconnecting", "Connected"])
  })

  it("what is watched is watched again, and the gap is told", async () => {
    const watching = client.watch({ uris: ["test://watched"] })
    const tags = () => watching.changes.map(({ _tag }) => _tag)
    if (way === effectAi) {
      return eventually(() => expect(watching.failure).toMatchObject({ reason: { _tag: "Unsupported" } }))
    }
    await eventually(() => expect(tags()).toEqual(["Subscribed"]))
    await host.restart()
    await eventually(() => expect(tags()).toEqual(["Subscribed", "Gap", "Subscribed"]))
    await client.call("touch", { uri: "test://watched" })
    await eventually(() => expect(tags()).toEqual(["Subscribed", "Gap", "Subscribed", "ResourceUpdated"]))
    return watching.end()
  })
})

describe("what is found out", () => {
  const discover = ["POST", "server/discover"]
  const post = ["POST", undefined]
  const get = ["GET", undefined]
  it.each(
    [
      ["sdk-v1", v1, [[...discover, 400], [...post, 200]]],
      ["sdk-v1 over HTTP+SSE", sse, [[...discover, 404], [...post, 404], [...get, 200], [...post, 202]]],
      ["sdk-v2", v2, [[...discover, 400], [...post, 200]]],
      ["sdk-v2, by requests", v2Lone, [[...discover, 200]]],
      ["effect-ai", effectAi, [[...discover, 200]]]
    ] as const
  )("%s is asked as little as can be", async (_, way, opening) => {
    const host = await way.talk(Board.make())
    const client = await Skein.talk(host.address)
    const seen = host.seen.map(({ headers, status, verb }) => [verb, headers["mcp-method"], status])
    // What follows the handshake may be on its way.
    expect(seen.slice(0, opening.length)).toEqual(opening)
    await client.run(client.client.ping())
    if (way !== v2Lone && way !== effectAi) {
      expect(host.seen.at(-1)!.headers["mcp-protocol-version"]).toBe("2025-11-25")
    }
    await client.close()
    await host.close()
  })
})

describe("what was found out before", () => {
  it.each(
    [
      // `initialize`; the word that follows it is on its way.
      ["sdk-v1", v1, "2025-11-25", ["POST"]],
      ["sdk-v1 over HTTP+SSE", sse, "2025-11-25", ["GET", "POST"]],
      ["sdk-v2, by requests", v2Lone, "2026-07-28", []],
      ["effect-ai", effectAi, "2026-07-28", []]
    ] as const
  )("%s is not found out again", async (_, way, revision, opening) => {
    const host = await way.talk(Board.make())
    const first = await Skein.talk(host.address)
    const kept = JSON.parse(JSON.stringify(first.client.serverProfile)) as ServerProfile
    await first.close()
    expect(kept).toMatchObject({ revision, httpMode: way.variant })
    const before = host.seen.length
    const second = await Skein.talk(host.address, { serverProfile: kept })
    const seen = host.seen.slice(before).map(({ verb }) => verb)
    expect(seen.slice(0, Math.max(1, opening.length))).toEqual(opening)
    expect(textOf(await second.call("model", {}))).toBe("Ada said")
    expect(second.client.serverProfile).toMatchObject({ revision, info: { name: way.server } })
    await second.close()
    await host.close()
  })

  it("and is found out anew where it holds no more", async () => {
    const old = await v1.talk(Board.make())
    const first = await Skein.talk(old.address)
    const kept = first.client.serverProfile
    await first.close()
    await old.close()
    const host = await v2Lone.talk(Board.make())
    const client = await Skein.talk(host.address, { serverProfile: kept })
    expect(client.revision).toBe("2026-07-28")
    expect(textOf(await client.call("model", {}))).toBe("Ada said")
    await client.close()
    await host.close()
  })
})

describe.each(
  [["sdk-v1", v1], ["sdk-v1, the store of its examples", example], ["sdk-v2", v2]] as const
)("the network of %s", (name, way) => {
  const board = Board.make()
  let host: Host
  let between: Relay
  beforeAll(async () => {
    host = await way.talk(board)
    between = await relay(host.port)
  })
  afterAll(async () => {
    await between.close()
    await host.close()
  })

  describe.each(["node", "fetch"] as const)("by %s", (wire) => {
    it.each(["2025-03-26", "2025-06-18", "2025-11-25"] as const)(
      "%s · a call whose connection is cut is resumed, and nothing is missed",
      async (revision) => {
        const { transport, url } = host.address
        const client = await Skein.talk({ transport, url: between.through(url) }, { ...Skein.held(revision), wire })
        const other = await Skein.talk(host.address, { wire })
        const progress: Array<number> = []
        let mend = () => {}
        const call = client.call("steps", {}, {
          onProgress: (note) => {
            if (progress.push(note.progress) === 3) mend = between.cut()
          }
        })
        await eventually(() => expect(progress).toEqual([1, 2, 3]))
        // "Disconnection SHOULD NOT be interpreted as the client cancelling its request."
        await eventually(() => expect(board.waiting.size).toBe(1))
        await other.call("release", {})
        mend()
        expect(textOf(await call)).toBe("four steps")
        // The store of the examples gives the events of one millisecond any order.
        if (name !== "sdk-v1, the store of its examples") expect(progress).toEqual([1, 2, 3, 4])
        expect(resumed(host).map(({ status }) => status)).toContain(200)
        expect(client.statuses).toEqual(["Connected"])
        await client.close()
        await other.close()
        await eventually(() => expect(host.sessions!()).toBe(0))
      }
    )
  })

  if (way === example) return

  it("2025-11-25 · a server that ends the connection before it answers is come back to", async () => {
    const before = resumed(host).length
    const client = await Skein.talk(host.address)
    expect(textOf(await client.call("late", {}))).toBe("late")
    expect(resumed(host)).toHaveLength(before + 1)
    await client.close()
  })

  it("2025-11-25 · what changes while the stream of the session is cut is heard of afterwards", async () => {
    const { transport, url } = host.address
    const client = await Skein.talk({ transport, url: between.through(url) })
    const other = await Skein.talk(host.address)
    const watching = client.watch({ uris: ["test://watched"] })
    const tags = () => watching.changes.map(({ _tag }) => _tag)
    await eventually(() => expect(tags()).toEqual(["Subscribed"]))
    await other.call("touch", { uri: "test://watched" })
    await client.call("touch", { uri: "test://watched" })
    await eventually(() => expect(tags()).toEqual(["Subscribed", "ResourceUpdated", "ResourceUpdated"]))
    const mend = between.cut()
    await other.call("touch", { uri: "test://watched" })
    mend()
    await eventually(() => expect(tags().slice(3)).toEqual(["ResourceUpdated"]))
    await watching.end()
    await client.close()
    await other.close()
  })
})
