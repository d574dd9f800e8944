/**
 * Tests of the sessions of official clients over HTTP with `fixtures/skeinInteractive.ts`: their requests, and how they
 * resume streams, cancel calls and end sessions. Each request and its response is recorded, so that endless retries are
 * found.
 */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest"
import type { ConnectInteractive, InteractiveClient, SentRequest } from "./testClient.ts"
import { textOf } from "./interactiveClientTests.ts"
import { eventually } from "./eventually.ts"
import { type TcpProxy, tcpProxy } from "./tcpProxy.ts"
import type { SessionServer } from "./skeinServer.ts"

export interface SessionsUnderTest {
  readonly server: () => SessionServer
  /** How often the tool `stuck` of the server was interrupted. Each test begins at 0. */
  readonly counts: { interrupted: number }
}

/** The requests with which a client resumed a stream. */
const resumed = ({ sent }: InteractiveClient): ReadonlyArray<SentRequest> =>
  sent.filter(({ headers }) => headers.has("last-event-id"))

/** How a pending call ends. */
export const outcomeOf = (call: Promise<unknown>): Promise<string> => call.then(() => "succeeded", () => "failed")

/** Calls a tool, and cancels the call after its first progress. */
export const cancelCall = async (client: InteractiveClient, counts: SessionsUnderTest["counts"]): Promise<void> => {
  const controller = new AbortController()
  const { signal } = controller
  await expect(client.call("stuck", {}, { signal, onProgress: () => controller.abort() })).rejects.toThrow(/.+/)
  await eventually(() => expect(counts.interrupted).toBe(1))
}

/** Checks with later calls that the client no longer tries to resume an earlier stream. It may have tried once. */
const expectNoRetries = async (client: InteractiveClient): Promise<void> => {
  for (let n = 0; n < 5; n++) expect(textOf(await client.call("late", {}))).toBe("late")
  const statuses = resumed(client).map(({ status }) => status)
  const successes = statuses.filter((status) => status === 200).length
  expect(successes).toBe(5)
  expect(statuses.filter((status) => status !== 200).join()).toMatch(/^(204)?$/)
}

export const sessionTests = (
  name: string,
  connect: ConnectInteractive,
  { counts, server }: SessionsUnderTest
): void => {
  let proxy: TcpProxy
  beforeAll(async () => {
    proxy = await tcpProxy(server().port)
  })
  afterAll(() => proxy.close())
  beforeEach(() => {
    counts.interrupted = 0
  })

  describe(`a session of ${name}`, () => {
    let client: InteractiveClient
    beforeEach(async () => {
      client = await connect(server().http)
    })
    afterEach(async () => {
      await client.terminate()
      await client.close()
      await eventually(() => expect([server().endpoint.sessions, server().endpoint.streams]).toEqual([0, 0]))
    })

    it("sends the session id and the revision with each message, and opens one standalone stream", async () => {
      await client.call("who", { question: "Who?" })
      await eventually(() =>
        expect(
          client.sent.map(({ contentType, method, status, verb }) => [verb, method, status, contentType]).toSorted()
        )
          .toEqual([
            ["GET", undefined, 200, "text/event-stream"],
            // The response to the elicitation request.
            ["POST", undefined, 202, null],
            ["POST", "initialize", 200, "application/json"],
            ["POST", "notifications/initialized", 202, null],
            ["POST", "tools/call", 200, "text/event-stream"]
          ].toSorted())
      )
      const [opening, ...rest] = client.sent
      expect(opening).toMatchObject({ method: "initialize" })
      expect(opening!.headers.has("mcp-session-id")).toBe(false)
      expect(client.sessionId).toMatch(/^[\x21-\x7e]{22,}$/)
      for (const { headers } of rest) {
        expect(headers.get("mcp-session-id")).toBe(client.sessionId)
        expect(headers.get("mcp-protocol-version")).toBe("2025-11-25")
      }
      expect(client.clientErrors).toEqual([])
    })

    it("resumes the stream that the server has closed before the response", async () => {
      expect(textOf(await client.call("late", {}))).toBe("late")
      const requests = resumed(client)
      expect(requests).toHaveLength(1)
      expect(requests).toMatchObject(requests.map(() => ({ verb: "GET", status: 200 })))
      expect(client.clientErrors).toEqual([])
    })

    it("cancels a call, and does not resume its stream", async () => {
      await cancelCall(client, counts)
      await expectNoRetries(client)
    })

    it("does not resume a stream that ended with an error", async () => {
      await expect(client.call("breaks", {}, { onProgress: () => {} })).rejects.toThrow(/.+/)
      await expectNoRetries(client)
    })

    it("cancels one call and continues another", async () => {
      const growing = client.call("grow", {})
      await cancelCall(client, counts)
      expect(textOf(await client.call("release", {}))).toBe("1")
      expect(textOf(await growing)).toBe("grown")
    })

    it("receives 404 for a session that was deleted, and opens a new session when it reconnects", async () => {
      const { sessionId } = client
      const headers = { "mcp-session-id": sessionId!, "mcp-protocol-version": "2025-11-25" }
      const ended = await fetch(server().http.url, { method: "DELETE", headers })
      expect(ended.ok).toBe(true)
      await expect(client.call("model", {})).rejects.toThrow(/not found|404|ended|session/i)
      expect(client.sent.findLast(({ verb }) => verb === "POST")).toMatchObject({ method: "tools/call", status: 404 })
      await client.close()
      client = await connect(server().http)
      expect(client.sessionId).not.toBe(sessionId)
      expect(textOf(await client.call("model", {}))).toBe("Ada said")
    })

    it("ends the session with DELETE, which interrupts its calls and fails them", async () => {
      const progress: Array<number> = []
      const stuck = client.call("stuck", {}, { onProgress: (note) => void progress.push(note.progress) })
      const end = outcomeOf(stuck)
      await eventually(() => expect(progress).toEqual([1]))
      await client.terminate()
      await eventually(() => expect(counts.interrupted).toBe(1))
      expect(client.sent.at(-1)).toMatchObject({ verb: "DELETE", status: 204 })
      expect(await end).toBe("failed")
      expect((await server().inspect()).sessions).toEqual([])
    })
  })

  for (const revision of ["2025-03-26", "2025-06-18", "2025-11-25"] as const) {
    it(`${revision} · ${name}: resumes its streams after its connections were cut, without missing an event`, async () => {
      const { transport, url } = server().http
      const client = await connect({ transport, url: proxy.proxied(url) }, { revision })
      const other = await connect(server().http, { user: "Bob" })
      const unwatch = await client.watch({ resource: "test://watched" })
      const progress: Array<number> = []
      let reconnect = () => {}
      const call = client.call("steps", {}, {
        onProgress: (note) => {
          if (progress.push(note.progress) === 3) reconnect = proxy.cut()
        }
      })
      await eventually(() => expect(progress).toEqual([1, 2, 3]))
      // "Disconnection SHOULD NOT be interpreted as the client cancelling its request."
      expect(textOf(await other.call("release", {}))).toBe("1")
      await other.call("touch", { uri: "test://watched" })
      await eventually(async () => {
        const { sessions } = await server().inspect()
        expect(sessions.flatMap(({ requests }) => requests)).toEqual([])
      })
      expect(progress).toEqual([1, 2, 3])
      reconnect()
      expect(textOf(await call)).toBe("four steps")
      expect(progress).toEqual([1, 2, 3, 4])
      await eventually(() => expect(client.received.updated).toEqual(["test://watched"]))
      expect(resumed(client).map(({ status }) => status)).toContain(200)
      await unwatch()
      for (const each of [client, other]) {
        await each.terminate()
        await each.close()
      }
      await eventually(() => expect([server().endpoint.sessions, server().endpoint.streams]).toEqual([0, 0]))
    })
  }
}
