/**
 * Sessions over HTTP of official clients with Skein's server.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest"
import { textOf } from "../interactiveClientTests.ts"
import { eventually } from "../eventually.ts"
import * as Interactive from "../fixtures/skeinInteractive.ts"
import * as SdkV1 from "../sdkV1Client.ts"
import * as SdkV2 from "../sdkV2Client.ts"
import { cancelCall, outcomeOf, sessionTests } from "../sessionTests.ts"
import { type RunningServer, startServer } from "../skeinServer.ts"

const counts = { interrupted: 0 }
let server: RunningServer
beforeAll(async () => {
  server = await startServer(Interactive.server({ interrupted: () => void counts.interrupted++ }))
})
afterAll(() => server.close())
beforeEach(() => {
  counts.interrupted = 0
})

for (const [name, connect] of [["sdk-v1", SdkV1.connectInteractive], ["sdk-v2", SdkV2.connectInteractive]] as const) {
  describe(name, () => sessionTests(name, connect, { server: () => server, counts }))

  it(`2024-11-05 transport · ${name}: the session begins and ends with its stream`, async () => {
    const client = await connect(server.sse)
    expect(server.endpoint.sessions).toBe(1)
    await cancelCall(client, counts)
    expect(client.clientErrors).toEqual([])
    const stuck = client.call("stuck", {})
    const end = outcomeOf(stuck)
    await eventually(async () =>
      expect((await server.inspect()).sessions[0]!.requests).toMatchObject([{ target: "stuck" }])
    )
    await client.close()
    expect(await end).toBe("failed")
    await eventually(() => expect([server.endpoint.sessions, counts.interrupted]).toEqual([0, 2]))
  })
  for (const transport of ["http", "sse"] as const) {
    it(`${name} over ${transport}: receives an error for a running call when the server shuts down`, async () => {
      const closing = await startServer(Interactive.server(), { shutdownTimeout: 0 })
      const client = await connect(closing[transport])
      const progress: Array<number> = []
      const end = outcomeOf(client.call("stuck", {}, { onProgress: (note) => void progress.push(note.progress) }))
      await eventually(() => expect(progress).toEqual([1]))
      await closing.close()
      expect(await end).toBe("failed")
      await client.close()
    })
  }

  it(`${name}: works with a server without sessions, except for requests to the client`, async () => {
    const stateless = await startServer(Interactive.server(), { stateless: true })
    const client = await connect(stateless.http)
    expect(textOf(await client.call("region", { region: "eu" }))).toBe("Working in eu")
    expect(client.sessionId).toBe(undefined)
    const failed = await client.call("model", {})
    expect(failed.isError).toBe(true)
    await eventually(() => expect(client.sent.find(({ verb }) => verb === "GET")?.status).toBe(405))
    expect(client.clientErrors).toEqual([])
    await client.close()
    expect(stateless.endpoint.sessions).toBe(0)
    await stateless.close()
  })
}
