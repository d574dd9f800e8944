/**
 * Many official clients at one Skein server, and clients that are killed during a call.
 */
import type * as Http from "@skein/server/Http"
import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { fileURLToPath } from "node:url"
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest"
import type { InteractiveClient } from "../testClient.ts"
import { textOf } from "../interactiveClientTests.ts"
import { eventually } from "../eventually.ts"
import * as Interactive from "../fixtures/skeinInteractive.ts"
import * as SdkV1 from "../sdkV1Client.ts"
import * as SdkV2 from "../sdkV2Client.ts"
import { type RunningServer, startServer } from "../skeinServer.ts"

let interrupted = 0
let server: RunningServer
const start = async (options?: Http.Options): Promise<void> => {
  server = await startServer(Interactive.server({ interrupted: () => void interrupted++ }), options)
}

const nothing = { requests: [], sessions: [], streams: 0 }
const remaining = async () => {
  const { requests, sessions, streams } = await server.inspect()
  return { requests, sessions, streams }
}

describe("many clients at one server", () => {
  const each = 6
  const clients: Array<{ readonly user: string; readonly client: InteractiveClient }> = []
  beforeAll(async () => {
    await start()
    const kinds = [
      (user: string) => SdkV1.connectInteractive(server.http, { user }),
      (user: string) => SdkV1.connectInteractive(server.http, { user, revision: "2025-03-26" }),
      (user: string) => SdkV1.connectInteractive(server.sse, { user }),
      (user: string) => SdkV2.connectInteractive(server.http, { user }),
      (user: string) => SdkV2.connectInteractive(server.http, { user, revision: "2026-07-28" })
    ]
    for (let n = 0; n < each; n++) {
      for (const [kind, connect] of kinds.entries()) {
        const user = `user-${kind}-${n}`
        clients.push({ user, client: await connect(user) })
      }
    }
  })
  afterAll(() => server.close())
  const all = <A>(each: (client: InteractiveClient, user: string) => Promise<A>) =>
    Promise.all(clients.map(({ client, user }) => each(client, user)))

  // All clients use the same request ids, counting from zero. The client of 2026-07-28 lists the tools first, since it
  // has to know which arguments it repeats in headers: it would detect that itself, but not with ten calls at once.
  it("sends each client its own results and requests", async () => {
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

  it("sends each client its own progress and subscribed updates", async () => {
    // An SDK drops progress that arrives in the same read as the result.
    const waiting = all(async (client) => {
      const progress: Array<number> = []
      const outcome = await client.call("steps", { quiet: true }, {
        onProgress: (note) => void progress.push(note.progress)
      })
      return [textOf(outcome), progress]
    })
    await eventually(async () => {
      const { requests, sessions } = await server.inspect()
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
      expect([first.received.updated, second.received.updated]).toEqual([["test://watched"], ["test://other"]])
    )
    expect(clients.slice(2).flatMap(({ client }) => client.received.updated)).toEqual([])
    expect(clients.flatMap(({ client }) => client.clientErrors)).toEqual([])
  })

  it("keeps no session, request or stream of a closed client", async () => {
    await Promise.all(
      clients.splice(0).map(async ({ client }) => {
        await client.terminate()
        await client.close()
      })
    )
    await eventually(async () => expect(await remaining()).toEqual(nothing))
  })
})

describe("a client that is killed during a call", () => {
  const program = fileURLToPath(new URL("../fixtures/waitingClient.ts", import.meta.url))

  // A killed client does not end its session.
  beforeAll(() => start({ limits: { idleTimeout: "1 second" } }))
  afterAll(() => server.close())

  const children = new Set<ChildProcess>()
  afterEach(() => children.forEach((child) => child.kill("SIGKILL")))

  /** Starts a client process, waits until its call is running, and returns a function that kills it. */
  const startClient = async (
    ...args: readonly [sdk: string, transport: "http" | "sse", revision: string, tool: string]
  ) => {
    const [sdk, transport, ...rest] = args
    const child = spawn(
      process.execPath,
      ["--conditions=@skein/source", program, sdk, transport, server[transport].url, ...rest],
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

  it("2026-07-28 · sdk-v2: interrupts its request and ends its subscriptions", async () => {
    const before = interrupted
    const kill = await startClient("sdk-v2", "http", "2026-07-28", "stuck")
    const { requests, streams } = await remaining()
    expect(requests.map(({ method }) => method).toSorted()).toEqual(["subscriptions/listen", "tools/call"])
    expect(streams).toBe(1)
    await kill()
    await eventually(async () => expect([await remaining(), interrupted]).toEqual([nothing, before + 1]))
  })

  for (const sdk of ["sdk-v1", "sdk-v2"]) {
    it(`2024-11-05 · ${sdk} over HTTP+SSE: ends its session`, async () => {
      const before = interrupted
      const kill = await startClient(sdk, "sse", "2024-11-05", "stuck")
      expect((await remaining()).sessions).toMatchObject([{ revision: "2024-11-05", requests: [{ target: "stuck" }] }])
      await kill()
      await eventually(async () => expect([await remaining(), interrupted]).toEqual([nothing, before + 1]))
    })

    it(`2025-11-25 · ${sdk}: completes its call, then expires its session`, async () => {
      const kill = await startClient(sdk, "http", "2025-11-25", "steps")
      await kill()
      await eventually(async () => expect((await remaining()).streams).toBe(0))
      // "Disconnection SHOULD NOT be interpreted as the client cancelling its request."
      expect((await remaining()).sessions).toMatchObject([
        { requests: [{ target: "steps", cancelled: false }], subscriptions: ["test://watched"] }
      ])
      const other = await SdkV2.connectInteractive(server.http, { revision: "2026-07-28" })
      expect(textOf(await other.call("release", {}))).toBe("1")
      await other.close()
      await eventually(async () => expect(await remaining()).toEqual(nothing))
    })
  }
})
