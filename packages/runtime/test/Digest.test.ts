import { assert, describe, it } from "@effect/vitest"
import * as Digest from "@skein/runtime/Digest"
import * as Effect from "effect/Effect"

// FIPS 180-4, example "abc".
const hex = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"

describe("Digest", () => {
  it.effect("digests texts and bytes alike", () =>
    Effect.gen(function*() {
      assert.strictEqual(yield* Digest.sha256Hex("abc"), hex)
      assert.strictEqual(yield* Digest.sha256Hex(new Uint8Array([97, 98, 99])), hex)
      assert.strictEqual((yield* Digest.sha256("abc")).length, 32)
    }))

  it.effect("writes Base64url without padding", () =>
    Effect.gen(function*() {
      // RFC 7636, appendix B.
      assert.strictEqual(
        yield* Digest.sha256Base64Url("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"),
        "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
      )
    }))
})
