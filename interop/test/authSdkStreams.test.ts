/** The streams of the official SDKs at a protected server, when their tokens expire: the test waits until they do. */
import { expect, it } from "@effect/vitest"
import * as TestUser from "@skein/auth/TestUser"
import * as Effect from "effect/Effect"
import * as Sdks from "../authSdkClients.ts"
import * as Servers from "../authServers.ts"
import { eventually } from "../eventually.ts"

/** Closes a connection at the end of a test. */
const open = (connect: () => Promise<Sdks.Connection>) =>
  Effect.acquireRelease(Effect.promise(connect), (connection) => Effect.promise(connection.close))

it.live("both open their streams again with a new token, after these have ended with the old one", () =>
  Effect.forEach([Sdks.v1, Sdks.v2], (sdk) =>
    Effect.gen(function*() {
      const { dev, requests, resource } = yield* Servers.start({
        dev: { accessTokenLifetime: "4 seconds" },
        verifier: { clockTolerance: "2 seconds" }
      })
      const [person, provider] = [TestUser.make(), new Sdks.MemoryProvider()]
      const connection = yield* open(() =>
        Sdks.signIn(sdk, { url: resource, provider, person, revision: "2025-11-25" })
      )
      const streams = () => requests.filter(({ verb }) => verb === "GET").map(({ status }) => status)
      yield* Effect.promise(() => eventually(() => expect(streams()).toContain(401)))
      // The stream that ended, and the refusal of the token. The next stream is open.
      expect(streams()).toEqual([200, 401])
      yield* Effect.promise(() => eventually(() => expect(provider.saves).toBe(2)))
      expect(yield* Effect.promise(() => connection.call("whoami"))).toBe(`${dev.issuer} ada`)
      expect(yield* dev.counts).toMatchObject({ authorizations: 1, refreshes: 1, refreshReuses: 0 })
      expect(provider.invalidated).toEqual([])
    }), { concurrency: 2 }))
