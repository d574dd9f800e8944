/**
 * Many official clients at one server, and some that are killed.
 */
import type * as Http from "@skein/server/Http"
import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { fileURLToPath } from "node:url"
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest"
import type { TalkingClient } from "../clients.ts"
import { textOf } from "../conversations.ts"
import { eventually } from "../eventually.ts"
import * as Talk from "../fixtures/skein-talk.ts"
import * as SdkV1 from "../sdk-v1-client.ts"
import * as SdkV2 from "../sdk-v2-client.ts"
import { serve, type Serving } from "../serving.ts"

let interrupted = 0
let talk: Serving
const begin = async (options?: Http.Options): Promise<void> => {
  talk = await serve(Talk.server({ interrupted: () => void interrupted++ }), options)
}

const nothing = { requests: [], sessions: [], streams: 0 }
const left = async () => {
  const { requests, sessions, streams } = await talk.inspect()
  return { requests, sessions, streams }
}

describe("many clients at one server", () => {
  const each = 6
  const clients: Array<{ readonly user: string; readonly client: TalkingClient }> = []
  beforeAll(async () => {
    await begin()
    const kinds = [
      (user: string) => SdkV1.talk(talk.http, { user }),
      (user: string) => SdkV1.talk(talk.http, { user, revision: "2025-03-26" }),
      (user: string) => SdkV1.talk(talk.sse, { user }),
      (user: string) => SdkV2.talk(talk.http, { user }),
      (user: string) => SdkV2.talk(talk.http, { user, revision: "2026-07-28" })
    ]
    for (let n = 0; n < each; n++) {
      for (const [kind, connect] of kinds.entries()) {
        const user = `user-${kind}-${n}`
        clients.push({ user, client: await connect(user) })
      }
    }
  })
  afterAll(() => talk.close())
  const all = <A>(each: (client: TalkingClient, user: string) => Promise<A>) =>
    Promise.all(clients.map(({ client, user }) => each(client, user)))

  // Their ids are the same: each counts from nought. The client of 2026-07-28 has to know which arguments it mirrors; it finds out
  // by itself, but not with ten calls at once.
  it("each gets its own answers, and is asked its own questions", async () => {
    await all(async (client, user) => {
      await client.tools()
      const rounds = Array.from({ length: 10 }, async (_, n) => {
        expect(textOf(await client.call("region", { region: `${user}/${n}` }))).toBe(`Working in ${user}/${n}`)
        expect(textOf(await client.call("model", {}))).toBe(`${user} said`)
        expect(textOf(await client.call("places", {}))).toBe(`file:///home/${user}`)
      })
      await Promise.all(rounds)
      expect(client.asked).toHaveLength(20)
    })
  })

  it("each hears its own progress, and of what it watches", async () => {
    // An SDK forgets progress that comes in one read with the answer.
    const waiting = all(async (client) => {
      const progress: Array<number> = []
      const outcome = await client.call("steps", { quiet: true }, {
        onProgress: (note) => void progress.push(note.progress)
      })
      return [textOf(outcome), progress]
    })
    await eventually(async () => {
      const { requests, sessions } = await talk.inspect()
      const steps = [...requests, ...sessions.flatMap(({ requests }) => requests)]
      expect(steps.map(({ progress, target }) => [target, progress?.progress])).toEqual(clients.map(() => ["steps", 3]))
    })
    const [{ client: first }, { client: second }] = clients as [typeof clients[0], typeof clients[0]]
    await first.watch({ resource: "test://watched" })
    await second.watch({ resource: "test://other" })
    await second.call("touch", { uri: "test://watched" })
    await second.call("touch", { uri: "test://other" })
    expect(textOf(await second.call("release", {}))).toBe(String(clients.length))
    for (const [text, progress] of await waiting) {
      expect(text).toBe("four steps")
      expect(progress).toEqual([1, 2, 3])
    }
    await eventually(() =>
      expect([first.heard.updated, second.heard.updated]).toEqual([["test://watched"], ["test://other"]])
    )
    expect(clients.slice(2).flatMap(({ client }) => client.heard.updated)).toEqual([])
    expect(clients.flatMap(({ client }) => client.complaints)).toEqual([])
  })

  it("nothing is left of them", async () => {
    await Promise.all(
      clients.splice(0).map(async ({ client }) => {
        await client.terminate()
        await client.close()
      })
    )
    await eventually(async () => expect(await left()).toEqual(nothing))
  })
})

describe("a client that is killed while it waits leaves nothing", () => {
  const program = fileURLToPath(new URL("../fixtures/doomed-client.ts", import.meta.url))

  // Who is killed does not end its session.
  beforeAll(() => begin({ sessions: { idleTimeout: "1 second" } }))
  afterAll(() => talk.close())

  const children = new Set<ChildProcess>()
  afterEach(() => children.forEach((child) => child.kill("SIGKILL")))

  /** A client's process, once it waits for the answer. */
  const doomed = async (...args: readonly [sdk: string, transport: "http" | "sse", revision: string, tool: string]) => {
    const [sdk, transport, ...rest] = args
    const child = spawn(
      process.execPath,
      ["--conditions=@skein/source", program, sdk, transport, talk[transport].url, ...rest],
      { stdio: ["ignore", "pipe", "inherit"] }
    )
    children.add(child)
    await once(child.stdout, "data")
    return async () => {
      child.kill("SIGKILL")
      await once(child, "exit")
      children.delete(child)
    }
  }

  it("2026-07-28 · sdk-v2: its request and its subscriptions end with their streams", async () => {
    const before = interrupted
    const kill = await doomed("sdk-v2", "http", "2026-07-28", "stuck")
    const { requests, streams } = await left()
    expect(requests.map(({ method }) => method).toSorted()).toEqual(["subscriptions/listen", "tools/call"])
    expect(streams).toBe(1)
    await kill()
    await eventually(async () => expect([await left(), interrupted]).toEqual([nothing, before + 1]))
  })

  for (const sdk of ["sdk-v1", "sdk-v2"]) {
    it(`2024-11-05 · ${sdk} over HTTP+SSE: its session ends with its stream`, async () => {
      const before = interrupted
      const kill = await doomed(sdk, "sse", "2024-11-05", "stuck")
      expect((await left()).sessions).toMatchObject([{ revision: "2024-11-05", requests: [{ target: "stuck" }] }])
      await kill()
      await eventually(async () => expect([await left(), interrupted]).toEqual([nothing, before + 1]))
    })

    it(`2025-11-25 · ${sdk}: its call goes on, and its session expires after that`, async () => {
      const kill = await doomed(sdk, "http", "2025-11-25", "steps")
      await kill()
      await eventually(async () => expect((await left()).streams).toBe(0))
      // "Disconnection SHOULD NOT be interpreted as the client cancelling its request."
      expect((await left()).sessions).toMatchObject([
        { requests: [{ target: "steps", cancelled: false }], subscriptions: ["test://watched"] }
      ])
      const other = await SdkV2.talk(talk.http, { revision: "2026-07-28" })
      expect(textOf(await other.call("release", {}))).toBe("1")
      await other.close()
      await eventually(async () => expect(await left()).toEqual(nothing))
    })
  }
})
