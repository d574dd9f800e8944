/** The parts of the codec: the digest of an input request, the canonical form of its text, and the seal. */
import { describe, expect, it } from "@effect/vitest"
import { createHash, randomBytes } from "node:crypto"
import { makeRequestStateCodec } from "../../src/internal/dispatch/requestStateCodec.ts"
import * as CanonicalJson from "@skein/protocol/CanonicalJson"
import { sha256 } from "../../src/internal/base/digest.ts"

describe("sha256", () => {
  it("returns the values of FIPS 180-4", () => {
    const hex = (text: string) => Buffer.from(sha256(text)).toString("hex")
    expect(hex("")).toBe("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")
    expect(hex("abc")).toBe("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
  })

  it("returns the same as node:crypto, for any length", () => {
    for (let length = 0; length < 300; length++) {
      const text = randomBytes(length).toString("base64")
      expect(Buffer.from(sha256(text)).equals(createHash("sha256").update(text).digest())).toBe(true)
    }
    const wide = "ü€😀".repeat(10_000)
    expect(Buffer.from(sha256(wide)).equals(createHash("sha256").update(wide).digest())).toBe(true)
  })
})

describe("canonical", () => {
  it("returns the same text for equal values only", () => {
    expect(CanonicalJson.stringify({ b: 1, a: { d: [1, { f: 1, e: 2 }], c: null } })).toBe(
      CanonicalJson.stringify({ a: { c: null, d: [1, { e: 2, f: 1 }] }, b: 1 })
    )
    expect(CanonicalJson.stringify([1, 2])).not.toBe(CanonicalJson.stringify([2, 1]))
    expect(CanonicalJson.stringify({ a: undefined })).toBe(CanonicalJson.stringify({}))
    expect(CanonicalJson.stringify(undefined)).toBe("null")
    expect(CanonicalJson.stringify(JSON.parse(`{"__proto__":1}`))).toBe(`{"__proto__":1}`)
  })
})

describe("a seal", () => {
  const secret = randomBytes(32)

  it("opens the sealed text only", async () => {
    const seal = makeRequestStateCodec("s", [secret])
    const sealed = await seal.seal("text €")
    expect(await seal.open(sealed)).toBe("text €")
    for (const other of ["", "A", `${sealed}A`, sealed.slice(1), sealed.toUpperCase(), "!"]) {
      expect(await seal.open(other)).toBe(undefined)
    }
  })

  it("differs every time", async () => {
    const seal = makeRequestStateCodec("s", [secret])
    expect(await seal.seal("text")).not.toBe(await seal.seal("text"))
  })

  it("opens only the state of the same server and keys", async () => {
    const sealed = await makeRequestStateCodec("s", [secret]).seal("text")
    expect(await makeRequestStateCodec("t", [secret]).open(sealed)).toBe(undefined)
    expect(await makeRequestStateCodec("s", [randomBytes(32)]).open(sealed)).toBe(undefined)
    expect(await makeRequestStateCodec("s").open(sealed)).toBe(undefined)
    expect(await makeRequestStateCodec("s", [randomBytes(32), secret]).open(sealed)).toBe("text")
    const own = makeRequestStateCodec("s")
    expect(await own.open(await own.seal("text"))).toBe("text")
  })

  it("never starts with a dash, which would look like an option to a command line", async () => {
    const own = makeRequestStateCodec("s")
    const sealed = await Promise.all(Array.from({ length: 2_000 }, () => own.seal("text")))
    expect(sealed.filter((text) => text.startsWith("-"))).toEqual([])
  })
})
