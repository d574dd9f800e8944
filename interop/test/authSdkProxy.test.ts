/** The clients of the official SDKs, with their own OAuth code, at a server behind a `Proxy`. */
import { describe, expect, it } from "@effect/vitest"
import * as TestUser from "@skein/auth/TestUser"
import * as Effect from "effect/Effect"
import * as Sdks from "../authSdkClients.ts"
import * as Servers from "../authServers.ts"

const open = (connect: () => Promise<Sdks.Connection>) =>
  Effect.acquireRelease(Effect.promise(connect), (connection) => Effect.promise(connection.close))

for (const sdk of [Sdks.v1, Sdks.v2]) {
  describe(`${sdk.name} at a proxy`, () => {
    for (const revision of sdk.revisions) {
      it.live(`${revision} · signs in with the person's consent, refreshes, and steps up`, () =>
        Effect.gen(function*() {
          const { dev, resource } = yield* Servers.startProxied()
          const { origin } = new URL(resource)
          const [person, provider] = [TestUser.make(), new Sdks.MemoryProvider()]
          const connection = yield* open(() => Sdks.signIn(sdk, { url: resource, provider, person, revision }))
          const call = (name: string) => Effect.promise(() => connection.call(name))
          expect(connection.revision()).toBe(revision)
          expect(yield* call("whoami")).toBe(`${origin} ${dev.issuer} ada`)
          expect(yield* call("upstream")).toBe("ada")
          expect(provider.redirects[0]!.origin).toBe(origin)
          // The consent at the proxy comes before the sign-in at the upstream.
          const places = person.visited.map((url) => new URL(url))
          const consent = places.findIndex((url) => url.origin === origin && url.pathname.startsWith("/interaction/"))
          expect(consent).toBeGreaterThanOrEqual(0)
          expect(places.findIndex((url) => url.origin === dev.issuer)).toBeGreaterThan(consent)
          expect(yield* dev.counts).toMatchObject({ registrations: 0, authorizations: 1 })

          const { access_token: before } = provider.stored!
          provider.stored = { ...provider.stored!, access_token: `${before.slice(0, -4)}AAAA` }
          expect(yield* call("upstream")).toBe("ada")
          expect(provider.redirects).toHaveLength(1)

          // SDK v1 asks the person only without a refresh token.
          if (sdk === Sdks.v1) {
            const { refresh_token: _, ...tokens } = provider.stored
            provider.stored = tokens
          }
          const brew = () => Sdks.callWithStepUp(sdk, connection, provider, person, "brew")
          expect(yield* Effect.promise(brew)).toBe("tea")
          expect(provider.redirects).toHaveLength(2)
          expect(provider.invalidated).toEqual([])
          expect(yield* dev.counts).toMatchObject({ authorizations: 2, refreshReuses: 0 })
        }))
    }

    it.live("gets nothing if the person does not consent, and nothing reaches the upstream", () =>
      Effect.gen(function*() {
        const { dev, resource } = yield* Servers.startProxied()
        const person = TestUser.make({ answer: "deny" })
        const provider = new Sdks.MemoryProvider()
        const connection = sdk.open(resource, provider)
        const refused = yield* Effect.promise(() => connection.connect().catch((error: unknown) => error))
        expect(sdk.isUnauthorized(refused)).toBe(true)
        const answer = yield* person.signIn(provider.redirects[0]!)
        expect(answer.get("error")).toBe("access_denied")
        // SDK v1 takes a code, and leaves errors to the host.
        if (sdk === Sdks.v2) {
          const failure = yield* Effect.promise(() => connection.finish(answer).then(() => "no error", String))
          expect(failure).toContain("OAuthError")
        }
        expect(yield* dev.counts).toMatchObject({ authorizations: 0 })
      }))
  })
}

// SDK v1 reports the 401 of all parallel calls but one (`_hasCompletedAuthFlow` in its `client/streamableHttp.js`).
it.live("sdk-v2 refreshes for parallel calls, each with the same refresh token, within the grace of the proxy", () =>
  Effect.gen(function*() {
    const { resource } = yield* Servers.startProxied()
    const [person, provider] = [TestUser.make(), new Sdks.MemoryProvider()]
    const connection = yield* open(() => Sdks.signIn(Sdks.v2, { url: resource, provider, person }))
    const { access_token: before } = provider.stored!
    provider.stored = { ...provider.stored!, access_token: `${before.slice(0, -4)}AAAA` }
    const calls = Array.from({ length: 5 }, () => Effect.promise(() => connection.call("upstream")))
    expect(yield* Effect.all(calls, { concurrency: "unbounded" })).toEqual(calls.map(() => "ada"))
    expect(provider.redirects).toHaveLength(1)
    expect(provider.invalidated).toEqual([])
  }))
