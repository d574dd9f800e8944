/** Skein's `OAuth` at protected servers of the official SDKs. */
import { describe, expect, it } from "@effect/vitest"
import { IssuerMismatchError } from "@modelcontextprotocol/client"
import * as Grant from "@skein/auth/Grant"
import * as OAuth from "@skein/auth/OAuth"
import * as TestUser from "@skein/auth/TestUser"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Sdks from "../authSdkClients.ts"
import * as Servers from "../authSdkServers.ts"
import { connect, redirectUri, services, withClockAhead } from "../authSkeinClient.ts"

const grant = Grant.authorizationCode({ clientName: "Tea House" })

interface Counts {
  readonly authorizations: number
  readonly refreshes: number
  readonly refreshReuses: number
  readonly revocations: number
}

/** A protected server, and what happened at its authorization server. */
interface Started {
  readonly resource: string
  readonly counts: Effect.Effect<Counts>
  /** Ends all sign-ins. */
  readonly revokeAll: Effect.Effect<void>
}

const ofProvider = ({ provider, resource }: {
  readonly resource: string
  readonly provider: Servers.MemoryAuthorization
}): Started => ({
  resource,
  counts: Effect.sync(() => ({ ...provider.counts })),
  revokeAll: Effect.sync(() => provider.revoke())
})

const servers = {
  "the authorization router of SDK v1": {
    revisions: ["2025-03-26", "2025-06-18", "2025-11-25"],
    start: Effect.map(Servers.v1Router(), ofProvider)
  },
  "the authorization proxy of SDK v1": {
    revisions: ["2025-03-26", "2025-06-18", "2025-11-25"],
    start: Effect.map(Servers.v1ProxyOfV1(redirectUri), ofProvider)
  },
  "requireBearerAuth of SDK v2": {
    revisions: ["2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"],
    start: Effect.map(Servers.v2(), ({ dev, resource }): Started => ({
      resource,
      counts: dev.counts,
      // Its verifier accepts a signed token until it expires.
      revokeAll: dev.revokeAll
    }))
  }
} as const

for (const [name, { revisions, start }] of Object.entries(servers)) {
  describe(name, () => {
    for (const revision of revisions) {
      it.live(`${revision} · signs in, steps up, refreshes, signs out with a revocation, and signs in again`, () => {
        let ahead = 0
        return Effect.gen(function*() {
          const { counts, resource } = yield* start
          const oauth = yield* OAuth.make({ grant })
          const call = yield* connect(resource, oauth, revision)
          const clientId = Effect.map(oauth.state(resource), (state) => Option.getOrThrow(state).clientId)
          expect(yield* call("whoami")).toBe(yield* clientId)
          expect(yield* counts).toMatchObject({ authorizations: 1, refreshes: 0 })

          expect(yield* call("brew")).toBe("tea")
          expect(yield* call("brew")).toBe("tea")
          expect(Option.getOrThrow(yield* oauth.state(resource)).scopes).toEqual(
            expect.arrayContaining(["mcp:read", "mcp:write"])
          )
          expect(yield* counts).toMatchObject({ authorizations: 2, refreshes: 0 })

          ahead = 10 * 60_000 - 10_000
          expect(yield* call("brew")).toBe("tea")
          expect(yield* counts).toMatchObject({ authorizations: 2, refreshes: 1, refreshReuses: 0 })

          yield* oauth.signOut(resource)
          expect((yield* counts).revocations).toBeGreaterThan(0)
          expect(Option.isNone(yield* oauth.state(resource))).toBe(true)
          yield* oauth.signIn(resource)
          expect(yield* call("whoami")).toBe(yield* clientId)
          expect(yield* counts).toMatchObject({ authorizations: 3, refreshReuses: 0 })
        }).pipe(withClockAhead(() => ahead), Effect.provide(services))
      })
    }
  })
}

it.live("2025-11-25 · asks the person again after the router of SDK v1 has ended the sign-in", () =>
  Effect.gen(function*() {
    const { counts, resource, revokeAll } = ofProvider(yield* Servers.v1Router())
    const oauth = yield* OAuth.make({ grant, signInInterval: "0 seconds" })
    const call = yield* connect(resource, oauth, "2025-11-25")
    const clientId = yield* call("whoami")
    yield* revokeAll
    expect(yield* call("whoami")).toBe(clientId)
    expect(yield* counts).toMatchObject({ authorizations: 2, refreshReuses: 0 })
  }).pipe(Effect.provide(services)))

it.live("2026-07-28 · refuses an answer whose iss the proxy of SDK v1 passes on, as SDK v2's client does", () =>
  Effect.gen(function*() {
    // The metadata of the proxy has its own issuer, and the answer has that of the upstream (RFC 9207, 2.4: a mix-up).
    const { dev, resource } = yield* Servers.v1ProxyOfDevServer(redirectUri)
    const oauth = yield* OAuth.make({ grant })
    const error = yield* Effect.flip(oauth.signIn(resource))
    expect(error.reason._tag).toBe("InvalidAuthorizationResponse")
    const other = yield* Servers.v1ProxyOfDevServer(Sdks.redirectUri)
    const refused = yield* Effect.promise(() =>
      Sdks.signIn(Sdks.v2, {
        url: other.resource,
        provider: new Sdks.MemoryProvider(),
        person: TestUser.make()
      }).catch((error: unknown) => error)
    )
    expect(refused).toBeInstanceOf(IssuerMismatchError)
    for (const { counts } of [dev, other.dev]) expect(yield* counts).toMatchObject({ authorizations: 1, tokens: 0 })
  }).pipe(Effect.provide(services)))

it.live("2026-07-28 · signs in as itself at requireBearerAuth of SDK v2, and steps up", () =>
  Effect.gen(function*() {
    const clientSecret = "a secret of the job"
    const { dev, resource } = yield* Servers.v2({ clients: [{ clientId: "job", clientSecret }] })
    const job = Grant.clientCredentials({
      clientId: "job",
      clientSecret: Redacted.make(clientSecret),
      issuer: dev.issuer
    })
    const call = yield* connect(resource, yield* OAuth.make({ grant: job }), "2026-07-28")
    expect(yield* call("whoami")).toBe("job")
    expect(yield* call("brew")).toBe("tea")
    expect(yield* dev.counts).toMatchObject({ registrations: 0, authorizations: 0, tokens: 2 })
  }).pipe(Effect.provide(services)))
