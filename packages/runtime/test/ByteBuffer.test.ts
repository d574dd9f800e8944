import { describe, expect, it } from "@effect/vitest"
import { ByteBuffer, decodeUtf8 } from "@skein/runtime/ByteBuffer"

describe("ByteBuffer", () => {
  it("returns the bytes and the text of all chunks, however they are split", () => {
    const bytes = Buffer.from("é€😀 and \ufeff")
    for (const isStable of [false, true]) {
      for (const length of [1, 2, 3, 100]) {
        const buffer = new ByteBuffer()
        for (let at = 0; at < bytes.length; at += length) buffer.add(bytes.subarray(at, at + length), isStable)
        expect(buffer.size).toBe(bytes.length)
        expect(Buffer.from(buffer.bytes)).toEqual(bytes)
        expect(buffer.text).toBe("é€😀 and \ufeff")
      }
    }
  })

  it("copies a chunk that is not stable, and does not copy a single one that is", () => {
    for (const isStable of [false, true]) {
      const chunk = Buffer.from("abc")
      const buffer = new ByteBuffer()
      buffer.add(chunk, isStable)
      chunk[0] = 120
      expect(buffer.text).toBe(isStable ? "xbc" : "abc")
    }
  })

  it("does not change a stable chunk when more are added, or after clear", () => {
    const chunk = Buffer.from("abcdef").subarray(0, 3)
    const buffer = new ByteBuffer()
    buffer.add(chunk, true)
    buffer.add(Buffer.from("X"))
    buffer.clear()
    buffer.add(Buffer.from("yz"))
    expect(buffer.text).toBe("yz")
    expect(Buffer.from(chunk.buffer, chunk.byteOffset, 6).toString()).toBe("abcdef")
  })

  it("takes memory in proportion to its bytes when each arrives in a chunk of its own", () => {
    const chunk = Buffer.from("a")
    const buffer = new ByteBuffer()
    globalThis.gc!()
    const before = process.memoryUsage()
    for (let n = 0; n < 1_048_576; n++) buffer.add(chunk)
    globalThis.gc!()
    const after = process.memoryUsage()
    const grown = after.heapUsed + after.arrayBuffers - before.heapUsed - before.arrayBuffers
    expect(buffer.size).toBe(1_048_576)
    expect(grown).toBeLessThan(8 * 1_048_576)
  })

  it("decodes bytes that are not UTF-8 as U+FFFD", () => {
    expect(decodeUtf8(Buffer.from([97, 255, 98]))).toBe("a\ufffdb")
    expect(decodeUtf8(new Uint8Array([97, 255, 98]), 1)).toBe("\ufffdb")
  })
})
