/**
 * The request era over HTTP with the client that knows it: each request stands alone. What it sends is recorded.
 */
import * as Sdk from "@modelcontextprotocol/client"
import * as Revision from "@skein/protocol/Revision"
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest"
import type { TalkingClient } from "../clients.ts"
import { textOf } from "../conversations.ts"
import { eventually } from "../eventually.ts"
import * as Talk from "../fixtures/skein-talk.ts"
import * as SdkV2 from "../sdk-v2-client.ts"
import { serve, type Serving } from "../serving.ts"

const modern = "2026-07-28"

let interrupted = 0
let talk: Serving
beforeAll(async () => {
  talk = await serve(Talk.server({ interrupted: () => void interrupted++ }))
})
afterAll(() => talk.close())

/** What was sent since the last time, as pairs of a method and a status. */
const since = ({ sent }: TalkingClient) =>
  (sent as Array<TalkingClient["sent"][number]>).splice(0).map(({ method, status }) => [method, status])

describe(`${modern} · lone requests of sdk-v2`, () => {
  let talking: Awaited<ReturnType<typeof SdkV2.talk>>
  beforeEach(async () => {
    talking = await SdkV2.talk(talk.http, { revision: modern })
  })
  afterEach(async () => {
    await talking.close()
    await eventually(async () => {
      const { requests, sessions, streams } = await talk.inspect()
      expect({ requests, sessions, streams }).toEqual({ requests: [], sessions: [], streams: 0 })
    })
  })

  it("it discovers the server, and opens neither a session nor a stream", async () => {
    expect(since(talking)).toEqual([["server/discover", 200]])
    expect(talking.client.getDiscoverResult()).toMatchObject({ supportedVersions: expect.arrayContaining([modern]) })
    expect((await talking.client.discover()).capabilities).toMatchObject({ tools: { listChanged: true } })
    expect(talking.sessionId).toBe(undefined)
    expect(talk.endpoint.sessions).toBe(0)
  })

  it("each request names its revision, method and target, which are compared", async () => {
    await talking.call("model", {})
    await talking.read("test://watched")
    await talking.prompt("brief", { topic: "knots" })
    const named = talking.sent.slice(1).map(({ headers }) =>
      ["mcp-protocol-version", "mcp-method", "mcp-name"].map((name) => headers.get(name))
    )
    // The model is asked in between.
    expect(named).toEqual([
      [modern, "tools/call", "model"],
      [modern, "tools/call", "model"],
      [modern, "resources/read", "test://watched"],
      [modern, "prompts/get", "brief"]
    ])
  })

  it("arguments are mirrored into headers, whatever characters they have", async () => {
    await talking.tools()
    for (const region of ["eu-west", "Grüße, 世界", " with spaces "]) {
      expect(textOf(await talking.call("region", { region }))).toBe(`Working in ${region}`)
      expect(talking.sent.at(-1)!.headers.has("mcp-param-region")).toBe(true)
    }
    expect(talking.sent.at(-1)!.status).toBe(200)
  })

  it("a client that does not know what to mirror is refused, learns it, and tries again", async () => {
    since(talking)
    expect(textOf(await talking.call("region", { region: "eu" }))).toBe("Working in eu")
    expect(since(talking)).toEqual([["tools/call", 400], ["tools/list", 200], ["tools/call", 200]])
  })

  it("a question ends the request, and its answer comes with the next; questions asked at once go together", async () => {
    since(talking)
    await talking.call("who", { question: "Who?" })
    expect(since(talking)).toEqual(Array.from({ length: 2 }, () => ["tools/call", 200]))
    await talking.call("everything", {})
    expect(talking.asked).toHaveLength(4)
    expect(since(talking)).toEqual(Array.from({ length: 2 }, () => ["tools/call", 200]))
    await talking.call("twice", {})
    expect(since(talking)).toEqual(Array.from({ length: 3 }, () => ["tools/call", 200]))
  })

  it("a client that cannot be asked is told what it lacks", async () => {
    const mute = await SdkV2.talk(talk.http, { revision: modern, able: false })
    const refused = await mute.call("model", {}).then(() => undefined, (error: unknown) => error)
    expect(refused).toBeInstanceOf(Sdk.MissingRequiredClientCapabilityError)
    expect(refused).toMatchObject({ data: { requiredCapabilities: { sampling: {} } } })
    expect(since(mute).at(-1)).toEqual(["tools/call", 400])
    await mute.close()
  })

  it("a request that is aborted is interrupted, without another word", async () => {
    const before = interrupted
    since(talking)
    const controller = new AbortController()
    const call = talking.call("stuck", {}, { signal: controller.signal, onProgress: () => controller.abort() })
    await expect(call).rejects.toThrow(/.+/)
    await eventually(() => expect(interrupted).toBe(before + 1))
    expect(since(talking)).toEqual([["tools/call", 200]])
  })

  it("a request is answered when the server ends, however much was said before", async () => {
    const passing = await serve(Talk.server(), { shutdownTimeout: 0 })
    const other = await SdkV2.talk(passing.http, { revision: modern })
    const running = Promise.withResolvers<void>()
    const end = other.call("stuck", {}, { onProgress: () => running.resolve() }).then(() => undefined, String)
    await running.promise
    await passing.close()
    expect(await end).toContain("the server ends")
    expect(other.complaints).toEqual([])
    await other.close()
  })

  it("a subscription is acknowledged with what is granted, and ends when either side wants", async () => {
    const subscription = await talking.client.listen({
      toolsListChanged: true,
      resourceSubscriptions: ["test://watched"]
    })
    expect(subscription.honoredFilter).toEqual({ toolsListChanged: true, resourceSubscriptions: ["test://watched"] })
    expect((await talk.inspect()).streams).toBe(1)
    await subscription.close()
    expect(await subscription.closed).toBe("local")
    await eventually(() => expect(talk.endpoint.streams).toBe(0))

    const passing = await serve(Talk.server())
    const other = await SdkV2.talk(passing.http, { revision: modern })
    const listening = await other.client.listen({ toolsListChanged: true })
    await passing.close()
    expect(await listening.closed).toBe("graceful")
    expect(other.complaints).toEqual([])
    await other.close()
  })

  it("a client that wants to hear of lists listens by itself, and lists again", async () => {
    const changed = Promise.withResolvers<ReadonlyArray<string>>()
    const onChanged = (error: Error | null, tools: ReadonlyArray<Sdk.Tool> | null) =>
      error === null ? changed.resolve((tools ?? []).map(({ name }) => name)) : changed.reject(error)
    const client = new Sdk.Client({ name: "interop", version: "1" }, {
      versionNegotiation: { mode: "auto" },
      listChanged: { tools: { onChanged } }
    })
    await client.connect(new Sdk.StreamableHTTPClientTransport(new URL(talk.http.url)))
    expect(client.autoOpenedSubscription?.honoredFilter).toEqual({ toolsListChanged: true })
    const growing = talking.call("grow", {})
    expect(await changed.promise).toContain("grown")
    await talking.call("release", {})
    await growing
    await client.close()
  })
})

describe("sdk-v2 and a server of the session era", () => {
  let old: Serving
  beforeAll(async () => {
    old = await serve(Talk.server({ revisions: Revision.sessionEra }))
  })
  afterAll(() => old.close())

  it("finds out, and opens a session", async () => {
    const client = await SdkV2.talk(old.http, { revision: "auto" })
    expect(client.revision).toBe("2025-11-25")
    expect(since(client).slice(0, 2)).toEqual([["server/discover", 400], ["initialize", 200]])
    expect(textOf(await client.call("who", { question: "Who?" }))).toBe("Hello, Ada!")
    expect(client.complaints).toEqual([])
    await client.terminate()
    await client.close()
    expect(old.endpoint.sessions).toBe(0)
  })

  it("is refused when it insists on the request era", async () => {
    await expect(SdkV2.talk(old.http, { revision: modern })).rejects.toThrow("Unsupported protocol version")
    expect(old.endpoint.sessions).toBe(0)
  })
})

describe("sdk-v2 and a server of the request era", () => {
  let fresh: Serving
  beforeAll(async () => {
    fresh = await serve(Talk.server({ revisions: [modern] }))
  })
  afterAll(() => fresh.close())

  it("finds out, and opens none", async () => {
    const client = await SdkV2.talk(fresh.http, { revision: "auto" })
    expect(client.revision).toBe(modern)
    expect(textOf(await client.call("who", { question: "Who?" }))).toBe("Hello, Ada!")
    await client.close()
  })

  it("is refused when it insists on a session", async () => {
    await expect(SdkV2.talk(fresh.http, { revision: "2025-11-25" })).rejects.toThrow("-32022")
    expect(fresh.endpoint.sessions).toBe(0)
  })
})
