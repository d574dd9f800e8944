/** The encryption of token stores and of the store of a proxy. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { isEncrypted, keyProblem, makeCipher } from "../../src/shared/cipher.ts"

const one = "the first key, of thirty-two bytes or more"
const two = Redacted.make("the second key, of thirty-two bytes or more")
const texts = ["", "text", "é", "\ud800", "\udfff\ud800", "\0", "\ufeffbom", "{\"json\":1}", "skein.1.x.y", "👩‍🚀"]

describe("the cipher", () => {
  it.effect("returns any text that it was given, also with lone surrogates, and none that looks like it", () =>
    Effect.gen(function*() {
      const cipher = yield* makeCipher([one], "tokens")
      for (const text of [...texts, ...texts.map((text) => text.repeat(100))]) {
        for (const use of texts) {
          const encrypted = yield* cipher.encrypt(text, use)
          assert.isTrue(isEncrypted(encrypted))
          // It goes into cookies and into columns of text.
          assert.match(encrypted, /^[\w.-]+$/)
          assert.strictEqual(yield* cipher.decrypt(encrypted, use), text)
          assert.isUndefined(yield* cipher.decrypt(encrypted, `${use} `))
        }
      }
    }))

  it.effect("encrypts with the first key, decrypts with all, and tells which texts have another one", () =>
    Effect.gen(function*() {
      const before = yield* makeCipher([one], "proxy")
      const during = yield* makeCipher([two, one], "proxy")
      const after = yield* makeCipher([two], "proxy")
      const old = yield* before.encrypt("text", "use")
      assert.strictEqual(yield* during.decrypt(old, "use"), "text")
      assert.isFalse(during.isCurrent(old))
      assert.isUndefined(yield* after.decrypt(old, "use"))
      const next = yield* during.encrypt("text", "use")
      assert.isTrue(during.isCurrent(next) && after.isCurrent(next))
      assert.strictEqual(yield* after.decrypt(next, "use"), "text")
      assert.isUndefined(yield* before.decrypt(next, "use"))
    }))

  it.effect("decrypts texts that were stored by 0.1", () =>
    Effect.gen(function*() {
      const stored = {
        tokens: "skein.1.Wow3lQ.5HQCkUHQTQ27l-AziMC7bGV_jKwlQGi41gEiKreiO_sdzP_gxQ0GKkkuVVPchp0GomLqGQ",
        proxy: "skein.1.vCDhNw.ogFGmxPwl3z8VLsdOACZoV0k-Gazakj8DKwu9k7aiNoYgNMv3NVesDhIrrhuQzJT6kvpTA"
      }
      for (const purpose of ["tokens", "proxy"] as const) {
        const cipher = yield* makeCipher([two, one], purpose)
        assert.strictEqual(yield* cipher.decrypt(stored[purpose], "use é"), "{\"json\":1} \ud800 é")
        assert.isFalse(cipher.isCurrent(stored[purpose]))
      }
    }))

  it.effect("has other keys for each purpose of one secret", () =>
    Effect.gen(function*() {
      const tokens = yield* makeCipher([one], "tokens")
      const proxy = yield* makeCipher([one], "proxy")
      assert.isUndefined(yield* proxy.decrypt(yield* tokens.encrypt("text", "use"), "use"))
    }))

  it.effect("refuses each text in which one character was changed, cut or added", () =>
    Effect.gen(function*() {
      const cipher = yield* makeCipher([one], "proxy")
      const encrypted = yield* cipher.encrypt("text", "use")
      // The last character of base64url may have bits that count for nothing: it is left out.
      for (let at = 0; at < encrypted.length - 1; at++) {
        const char = encrypted[at] === "A" ? "B" : "A"
        const changed = encrypted.slice(0, at) + char + encrypted.slice(at + 1)
        assert.isUndefined(yield* cipher.decrypt(changed, "use"), `${at}`)
      }
      for (const text of ["", "skein.1.", encrypted.slice(0, -4), encrypted.slice(1), `${encrypted}AAAA`]) {
        assert.isUndefined(yield* cipher.decrypt(text, "use"))
      }
    }))

  it("names a key that is missing or too short, and never its text", () => {
    assert.include(keyProblem([]), "no key")
    assert.include(keyProblem([one, "short s3cret"]), "key 2")
    assert.notInclude(keyProblem([one, "short s3cret"]), "s3cret")
    // Bytes count, and not characters.
    assert.isUndefined(keyProblem(["é".repeat(16)]))
    assert.isDefined(keyProblem([new Uint8Array(31)]))
    assert.isUndefined(keyProblem([new Uint8Array(32), two]))
  })
})
