/**
 * SHA-256, computed synchronously. WebCrypto is asynchronous, but an input request needs its key before it waits.
 *
 * A library with the same function takes more than ten times as long to load and is five times as large, and would be
 * the only one that every server needs besides Effect. `RequestStateCodec.test.ts` compares this code with
 * `node:crypto`.
 */

// The first 32 bits of the fractional parts of the roots of the first primes (FIPS 180-4, 4.2.2 and 5.3.3).
const fraction = (x: number): number => ((x - Math.floor(x)) * 0x100000000) | 0

const constants = (): { readonly start: Int32Array; readonly rounds: Int32Array } => {
  const primes: Array<number> = []
  for (let n = 2; primes.length < 64; n++) if (primes.every((p) => n % p !== 0)) primes.push(n)
  return {
    start: Int32Array.from(primes.slice(0, 8), (p) => fraction(Math.sqrt(p))),
    rounds: Int32Array.from(primes, (p) => fraction(Math.cbrt(p)))
  }
}

let cached: ReturnType<typeof constants> | undefined

const rotate = (x: number, n: number): number => (x >>> n) | (x << (32 - n))

/** Adds the padding and the length to a message: a whole number of blocks of 64 bytes. */
const padded = (message: Uint8Array): DataView => {
  const bytes = new Uint8Array(((message.length + 8) >> 6) + 1 << 6)
  bytes.set(message)
  bytes[message.length] = 0x80
  const view = new DataView(bytes.buffer)
  view.setUint32(bytes.length - 8, Math.floor(message.length / 0x20000000))
  view.setUint32(bytes.length - 4, message.length << 3)
  return view
}

/** Returns the 32 bytes of the SHA-256 of a text in UTF-8. */
export const sha256 = (text: string): Uint8Array => {
  const { rounds, start } = cached ??= constants()
  const view = padded(new TextEncoder().encode(text))
  const state = start.slice()
  const w = new Int32Array(64)
  for (let offset = 0; offset < view.byteLength; offset += 64) {
    for (let i = 0; i < 16; i++) w[i] = view.getInt32(offset + i * 4)
    for (let i = 16; i < 64; i++) {
      const x = w[i - 15]!
      const y = w[i - 2]!
      const s0 = rotate(x, 7) ^ rotate(x, 18) ^ (x >>> 3)
      const s1 = rotate(y, 17) ^ rotate(y, 19) ^ (y >>> 10)
      w[i] = w[i - 16]! + s0 + w[i - 7]! + s1
    }
    let [a, b, c, d, e, f, g, h] = state as unknown as [number, number, number, number, number, number, number, number]
    for (let i = 0; i < 64; i++) {
      const s1 = rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)
      const t1 = (h + s1 + ((e & f) ^ (~e & g)) + rounds[i]! + w[i]!) | 0
      const s0 = rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)
      const t2 = (s0 + ((a & b) ^ (a & c) ^ (b & c))) | 0
      h = g
      g = f
      f = e
      e = (d + t1) | 0
      d = c
      c = b
      b = a
      a = (t1 + t2) | 0
    }
    for (const [i, x] of [a, b, c, d, e, f, g, h].entries()) state[i] = state[i]! + x
  }
  const digest = new Uint8Array(32)
  const out = new DataView(digest.buffer)
  for (let i = 0; i < 8; i++) out.setInt32(i * 4, state[i]!)
  return digest
}
