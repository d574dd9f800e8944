/** The parts of a protection that a server of several processes refuses to start with. */
import { describe, expect, it } from "@effect/vitest"
import * as Protect from "@skein/auth/Protect"
import * as ReplayStore from "@skein/auth/ReplayStore"
import * as TokenVerifier from "@skein/auth/TokenVerifier"
import * as ProcessLocal from "@skein/runtime/ProcessLocal"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"

const base = {
  resource: "https://mcp.example/mcp",
  verify: TokenVerifier.jwt({ issuer: "https://as.example" })
}

/** The parts that a protection reports while it is made. */
const partsOf = (options: object) =>
  Effect.suspend(() => {
    const parts: Array<string> = []
    return Effect.scoped(Protect.make({ ...base, ...options } as never)).pipe(
      Effect.provideService(ProcessLocal.Receiver, ({ remedy, what }) => void parts.push(`${what}: ${remedy}`)),
      Effect.as(parts)
    )
  })

const failures = expect.stringMatching(
  /^the counts of failed authentications \(maxFailures\): accept .*allowLocal: true/
)

describe("the parts of one process", () => {
  it.effect("are the counts of failures, used proofs, and a random secret of nonces", () =>
    Effect.gen(function*() {
      expect(yield* partsOf({})).toEqual([failures])
      expect(yield* partsOf({ maxFailures: 0 })).toEqual([])
      const proofs = "the DPoP proofs in memory (ReplayStore): use SqlReplayStore.layer"
      expect((yield* partsOf({ maxFailures: 0, dpop: "accept" })).toSorted()).toEqual([proofs])
      expect((yield* partsOf({ maxFailures: 0, dpop: { require: false, nonces: {} } })).toSorted()).toEqual([
        proofs,
        "the random secret of DPoP nonces: set nonces.secret"
      ])
    }))

  it.effect("are none with a shared store and a secret", () =>
    Effect.gen(function*() {
      const shared = ReplayStore.makeMemory()
      const options = { maxFailures: 0, dpop: { require: false, nonces: { secret: Redacted.make("s".repeat(32)) } } }
      const parts = yield* Effect.provideService(partsOf(options), ReplayStore.ReplayStore, shared)
      expect(parts).toEqual([])
    }))
})
