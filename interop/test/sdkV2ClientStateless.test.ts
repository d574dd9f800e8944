/**
 * SDK v2's client with Skein's server in 2026-07-28, over HTTP, where each request is self-contained. The requests are
 * recorded.
 */
import * as Sdk from "@modelcontextprotocol/client"
import * as Revision from "@skein/protocol/Revision"
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest"
import type { InteractiveClient } from "../testClient.ts"
import { textOf } from "../interactiveClientTests.ts"
import { eventually } from "../eventually.ts"
import * as Interactive from "../fixtures/skeinInteractive.ts"
import * as SdkV2 from "../sdkV2Client.ts"
import { type RunningServer, startServer } from "../skeinServer.ts"

const modern = "2026-07-28"

let interrupted = 0
let server: RunningServer
beforeAll(async () => {
  server = await startServer(Interactive.server({ interrupted: () => void interrupted++ }))
})
afterAll(() => server.close())

/** The method and status of each request since the last call of this function. */
const newRequests = ({ sent }: InteractiveClient) =>
  (sent as Array<InteractiveClient["sent"][number]>).splice(0).map(({ method, status }) => [method, status])

describe(`${modern} · sdk-v2`, () => {
  let talking: Awaited<ReturnType<typeof SdkV2.connectInteractive>>
  beforeEach(async () => {
    talking = await SdkV2.connectInteractive(server.http, { revision: modern })
  })
  afterEach(async () => {
    await talking.close()
    await eventually(async () => {
      const { requests, sessions, streams } = await server.inspect()
      expect({ requests, sessions, streams }).toEqual({ requests: [], sessions: [], streams: 0 })
    })
  })

  it("discovers the server, and opens neither a session nor a stream", async () => {
    expect(newRequests(talking)).toEqual([["server/discover", 200]])
    expect(talking.client.getDiscoverResult()).toMatchObject({ supportedVersions: expect.arrayContaining([modern]) })
    expect((await talking.client.discover()).capabilities).toMatchObject({ tools: { listChanged: true } })
    expect(talking.sessionId).toBe(undefined)
    expect(server.endpoint.sessions).toBe(0)
  })

  it("sends the revision, method and target of each request as headers", async () => {
    await talking.call("model", {})
    await talking.read("test://watched")
    await talking.prompt("brief", { topic: "knots" })
    const named = talking.sent.slice(1).map(({ headers }) =>
      ["mcp-protocol-version", "mcp-method", "mcp-name"].map((name) => headers.get(name))
    )
    // The first call is repeated with the sampling response.
    expect(named).toEqual([
      [modern, "tools/call", "model"],
      [modern, "tools/call", "model"],
      [modern, "resources/read", "test://watched"],
      [modern, "prompts/get", "brief"]
    ])
  })

  it("sends arguments as headers, with any characters", async () => {
    await talking.tools()
    for (const region of ["eu-west", "Grüße, 世界", " with spaces "]) {
      expect(textOf(await talking.call("region", { region }))).toBe(`Working in ${region}`)
      expect(talking.sent.at(-1)!.headers.has("mcp-param-region")).toBe(true)
    }
    expect(talking.sent.at(-1)!.status).toBe(200)
  })

  it("lists the tools and retries after a rejected call without the required header", async () => {
    newRequests(talking)
    expect(textOf(await talking.call("region", { region: "eu" }))).toBe("Working in eu")
    expect(newRequests(talking)).toEqual([["tools/call", 400], ["tools/list", 200], ["tools/call", 200]])
  })

  it("responds to input requests with a new request, to several of them with one", async () => {
    newRequests(talking)
    await talking.call("who", { question: "Who?" })
    expect(newRequests(talking)).toEqual(Array.from({ length: 2 }, () => ["tools/call", 200]))
    await talking.call("everything", {})
    expect(talking.asked).toHaveLength(4)
    expect(newRequests(talking)).toEqual(Array.from({ length: 2 }, () => ["tools/call", 200]))
    await talking.call("twice", {})
    expect(newRequests(talking)).toEqual(Array.from({ length: 3 }, () => ["tools/call", 200]))
  })

  it("receives an error with the missing capability", async () => {
    const limited = await SdkV2.connectInteractive(server.http, { revision: modern, canBeAsked: false })
    const error = await limited.call("model", {}).then(() => undefined, (error: unknown) => error)
    expect(error).toBeInstanceOf(Sdk.MissingRequiredClientCapabilityError)
    expect(error).toMatchObject({ data: { requiredCapabilities: { sampling: {} } } })
    expect(newRequests(limited).at(-1)).toEqual(["tools/call", 400])
    await limited.close()
  })

  it("interrupts an aborted request, without a further request", async () => {
    const before = interrupted
    newRequests(talking)
    const controller = new AbortController()
    const call = talking.call("stuck", {}, { signal: controller.signal, onProgress: () => controller.abort() })
    await expect(call).rejects.toThrow(/.+/)
    await eventually(() => expect(interrupted).toBe(before + 1))
    expect(newRequests(talking)).toEqual([["tools/call", 200]])
  })

  it("receives an error for a running request when the server shuts down", async () => {
    const closing = await startServer(Interactive.server(), { shutdownTimeout: 0 })
    const other = await SdkV2.connectInteractive(closing.http, { revision: modern })
    const running = Promise.withResolvers<void>()
    const end = other.call("stuck", {}, { onProgress: () => running.resolve() }).then(() => undefined, String)
    await running.promise
    await closing.close()
    expect(await end).toContain("which may have run: check that before you send it again")
    expect(other.clientErrors).toEqual([])
    await other.close()
  })

  it("receives the accepted filter of a subscription, which either side can end", async () => {
    const subscription = await talking.client.listen({
      toolsListChanged: true,
      resourceSubscriptions: ["test://watched"]
    })
    expect(subscription.honoredFilter).toEqual({ toolsListChanged: true, resourceSubscriptions: ["test://watched"] })
    expect((await server.inspect()).streams).toBe(1)
    await subscription.close()
    expect(await subscription.closed).toBe("local")
    await eventually(() => expect(server.endpoint.streams).toBe(0))

    const closing = await startServer(Interactive.server())
    const other = await SdkV2.connectInteractive(closing.http, { revision: modern })
    const listening = await other.client.listen({ toolsListChanged: true })
    await closing.close()
    expect(await listening.closed).toBe("graceful")
    expect(other.clientErrors).toEqual([])
    await other.close()
  })

  it("subscribes to list changes automatically, and lists the tools again", async () => {
    const changed = Promise.withResolvers<ReadonlyArray<string>>()
    const onChanged = (error: Error | null, tools: ReadonlyArray<Sdk.Tool> | null) =>
      error === null ? changed.resolve((tools ?? []).map(({ name }) => name)) : changed.reject(error)
    const client = new Sdk.Client({ name: "interop", version: "1" }, {
      versionNegotiation: { mode: "auto" },
      listChanged: { tools: { onChanged } }
    })
    await client.connect(new Sdk.StreamableHTTPClientTransport(new URL(server.http.url)))
    expect(client.autoOpenedSubscription?.honoredFilter).toEqual({ toolsListChanged: true })
    const growing = talking.call("grow", {})
    expect(await changed.promise).toContain("grown")
    await talking.call("release", {})
    await growing
    await client.close()
  })
})

describe("sdk-v2 and a server without 2026-07-28", () => {
  let sessionServer: RunningServer
  beforeAll(async () => {
    sessionServer = await startServer(Interactive.server({ revisions: Revision.sessionBased }))
  })
  afterAll(() => sessionServer.close())

  it("negotiates, and opens a session", async () => {
    const client = await SdkV2.connectInteractive(sessionServer.http, { revision: "auto" })
    expect(client.revision).toBe("2025-11-25")
    expect(newRequests(client).slice(0, 2)).toEqual([["server/discover", 400], ["initialize", 200]])
    expect(textOf(await client.call("who", { question: "Who?" }))).toBe("Hello, Ada!")
    expect(client.clientErrors).toEqual([])
    await client.terminate()
    await client.close()
    expect(sessionServer.endpoint.sessions).toBe(0)
  })

  it("rejects a client that requires 2026-07-28", async () => {
    await expect(SdkV2.connectInteractive(sessionServer.http, { revision: modern })).rejects.toThrow(
      "Unsupported protocol version"
    )
    expect(sessionServer.endpoint.sessions).toBe(0)
  })
})

describe("sdk-v2 and a server of 2026-07-28 only", () => {
  let statelessServer: RunningServer
  beforeAll(async () => {
    statelessServer = await startServer(Interactive.server({ revisions: [modern] }))
  })
  afterAll(() => statelessServer.close())

  it("negotiates, and opens no session", async () => {
    const client = await SdkV2.connectInteractive(statelessServer.http, { revision: "auto" })
    expect(client.revision).toBe(modern)
    expect(textOf(await client.call("who", { question: "Who?" }))).toBe("Hello, Ada!")
    await client.close()
  })

  it("rejects a client that requires a session", async () => {
    await expect(SdkV2.connectInteractive(statelessServer.http, { revision: "2025-11-25" })).rejects.toThrow("-32022")
    expect(statelessServer.endpoint.sessions).toBe(0)
  })
})
