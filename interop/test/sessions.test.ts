/**
 * Sessions over HTTP with the official clients: what they send, how they come back to a stream, cancel, and end. Each request of a
 * client and how it was answered is recorded, so that one that goes on asking for ever is seen.
 */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest"
import type { Sent, TalkingClient } from "../clients.ts"
import { textOf } from "../conversations.ts"
import { eventually } from "../eventually.ts"
import * as Talk from "../fixtures/skein-talk.ts"
import { type Relay, relay } from "../relay.ts"
import * as SdkV1 from "../sdk-v1-client.ts"
import * as SdkV2 from "../sdk-v2-client.ts"
import { serve, type Serving } from "../serving.ts"

let interrupted = 0
let talk: Serving
let between: Relay
beforeAll(async () => {
  talk = await serve(Talk.server({ interrupted: () => void interrupted++ }))
  between = await relay(talk.port)
})
afterAll(async () => {
  await between.close()
  await talk.close()
})
beforeEach(() => {
  interrupted = 0
})

/** Where a client came back to a stream. */
const resumed = ({ sent }: TalkingClient): ReadonlyArray<Sent> =>
  sent.filter(({ headers }) => headers.has("last-event-id"))

/** How a call ends that is not waited for yet. */
const ending = (call: Promise<unknown>): Promise<string> => call.then(() => "answered", () => "failed")

/** Calls, and cancels once there was progress. */
const cancel = async (client: TalkingClient): Promise<void> => {
  const controller = new AbortController()
  const { signal } = controller
  await expect(client.call("stuck", {}, { signal, onProgress: () => controller.abort() })).rejects.toThrow(/.+/)
  await eventually(() => expect(interrupted).toBe(1))
}

/** A later exchange shows that the client has stopped coming back for an earlier one, which it may have done once. */
const goesOn = async (client: TalkingClient): Promise<void> => {
  for (let n = 0; n < 5; n++) expect(textOf(await client.call("late", {}))).toBe("late")
  const statuses = resumed(client).map(({ status }) => status)
  expect(statuses.filter((status) => status === 200)).toHaveLength(5)
  expect(statuses.filter((status) => status !== 200).join()).toMatch(/^(204)?$/)
}

for (const [name, connect] of [["sdk-v1", SdkV1.talk], ["sdk-v2", SdkV2.talk]] as const) {
  describe(`a session of ${name}`, () => {
    let client: TalkingClient
    beforeEach(async () => {
      client = await connect(talk.http)
    })
    afterEach(async () => {
      await client.terminate()
      await client.close()
      await eventually(() => expect([talk.endpoint.sessions, talk.endpoint.streams]).toEqual([0, 0]))
    })

    it("each message names the session and its revision, and one stream is open beside", async () => {
      await client.call("who", { question: "Who?" })
      await eventually(() =>
        expect(
          client.sent.map(({ contentType, method, status, verb }) => [verb, method, status, contentType]).toSorted()
        )
          .toEqual([
            ["GET", undefined, 200, "text/event-stream"],
            // The answer to the question.
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
      expect(client.complaints).toEqual([])
    })

    it("comes back for the answer when the server ends the connection", async () => {
      expect(textOf(await client.call("late", {}))).toBe("late")
      expect(resumed(client)).toMatchObject([{ verb: "GET", status: 200 }])
      expect(client.complaints).toEqual([])
    })

    it("cancels, and does not go on coming back to a stream that is over", async () => {
      await cancel(client)
      await goesOn(client)
    })

    it("an error on a stream is its end", async () => {
      await expect(client.call("breaks", {}, { onProgress: () => {} })).rejects.toThrow(/.+/)
      await goesOn(client)
    })

    it("what is cancelled is not heard of again, and what else runs goes on", async () => {
      const growing = client.call("grow", {})
      await cancel(client)
      expect(textOf(await client.call("release", {}))).toBe("1")
      expect(textOf(await growing)).toBe("grown")
    })

    it("a session that another has ended is answered with 404, and the next one is new", async () => {
      const { sessionId } = client
      const headers = { "mcp-session-id": sessionId!, "mcp-protocol-version": "2025-11-25" }
      const ended = await fetch(talk.http.url, { method: "DELETE", headers })
      expect(ended.ok).toBe(true)
      await expect(client.call("model", {})).rejects.toThrow(/not found|404|ended|session/i)
      expect(client.sent.findLast(({ verb }) => verb === "POST")).toMatchObject({ method: "tools/call", status: 404 })
      await client.close()
      client = await connect(talk.http)
      expect(client.sessionId).not.toBe(sessionId)
      expect(textOf(await client.call("model", {}))).toBe("Ada said")
    })

    it("ends with DELETE; what runs in it ends too, and is answered", async () => {
      const progress: Array<number> = []
      const stuck = client.call("stuck", {}, { onProgress: (note) => void progress.push(note.progress) })
      const end = ending(stuck)
      await eventually(() => expect(progress).toEqual([1]))
      await client.terminate()
      await eventually(() => expect(interrupted).toBe(1))
      expect(client.sent.at(-1)).toMatchObject({ verb: "DELETE", status: 204 })
      expect(await end).toBe("failed")
      expect((await talk.inspect()).sessions).toEqual([])
    })
  })

  for (const revision of ["2025-03-26", "2025-06-18", "2025-11-25"] as const) {
    it(`${revision} · ${name} whose connections are cut comes back, and misses nothing`, async () => {
      const { transport, url } = talk.http
      const client = await connect({ transport, url: between.through(url) }, { revision })
      const other = await connect(talk.http, { user: "Bob" })
      const unwatch = await client.watch({ resource: "test://watched" })
      const progress: Array<number> = []
      let mend = () => {}
      const call = client.call("steps", {}, {
        onProgress: (note) => {
          if (progress.push(note.progress) === 3) mend = between.cut()
        }
      })
      await eventually(() => expect(progress).toEqual([1, 2, 3]))
      // "Disconnection SHOULD NOT be interpreted as the client cancelling its request."
      expect(textOf(await other.call("release", {}))).toBe("1")
      await other.call("touch", { uri: "test://watched" })
      await eventually(async () => {
        const { sessions } = await talk.inspect()
        expect(sessions.flatMap(({ requests }) => requests)).toEqual([])
      })
      expect(progress).toEqual([1, 2, 3])
      mend()
      expect(textOf(await call)).toBe("four steps")
      expect(progress).toEqual([1, 2, 3, 4])
      await eventually(() => expect(client.heard.updated).toEqual(["test://watched"]))
      expect(resumed(client).map(({ status }) => status)).toContain(200)
      await unwatch()
      for (const each of [client, other]) {
        await each.terminate()
        await each.close()
      }
      await eventually(() => expect([talk.endpoint.sessions, talk.endpoint.streams]).toEqual([0, 0]))
    })
  }

  it(`the SSE client of ${name}: its session begins and ends with its stream`, async () => {
    const client = await connect(talk.sse)
    expect(talk.endpoint.sessions).toBe(1)
    await cancel(client)
    expect(client.complaints).toEqual([])
    const stuck = client.call("stuck", {})
    const end = ending(stuck)
    await eventually(async () =>
      expect((await talk.inspect()).sessions[0]!.requests).toMatchObject([{ target: "stuck" }])
    )
    await client.close()
    expect(await end).toBe("failed")
    await eventually(() => expect([talk.endpoint.sessions, interrupted]).toEqual([0, 2]))
  })
  for (const transport of ["http", "sse"] as const) {
    it(`${name} over ${transport}: when the server ends, its call is answered, however much was said before`, async () => {
      const passing = await serve(Talk.server(), { shutdownTimeout: 0 })
      const client = await connect(passing[transport])
      const progress: Array<number> = []
      const end = ending(client.call("stuck", {}, { onProgress: (note) => void progress.push(note.progress) }))
      await eventually(() => expect(progress).toEqual([1]))
      await passing.close()
      expect(await end).toBe("failed")
      await client.close()
    })
  }

  it(`${name} and a server that keeps no sessions`, async () => {
    const alone = await serve(Talk.server(), { sessions: { stateless: true } })
    const client = await connect(alone.http)
    expect(textOf(await client.call("region", { region: "eu" }))).toBe("Working in eu")
    expect(client.sessionId).toBe(undefined)
    const unasked = await client.call("model", {})
    expect(unasked.isError).toBe(true)
    await eventually(() => expect(client.sent.find(({ verb }) => verb === "GET")?.status).toBe(405))
    expect(client.complaints).toEqual([])
    await client.close()
    expect(alone.endpoint.sessions).toBe(0)
    await alone.close()
  })
}
