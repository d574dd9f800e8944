/**
 * The ids of the sessions of a fleet. An id has a code that the fleet computes with its key, so that an id which a client
 * has invented costs no query.
 */
import * as RandomId from "@skein/runtime/RandomId"
import { createHmac, timingSafeEqual } from "node:crypto"

// 128 random bits, and the first 64 bits of the code.
const randomChars = 22
const codeChars = 16
const pattern = new RegExp(`^[1-9]\\d{0,6}-[A-Za-z0-9]{${randomChars}}-[0-9a-f]{${codeChars}}$`)

export class SessionIds {
  readonly #key: string

  constructor(key: string) {
    this.#key = key
  }

  #code(text: string): string {
    return createHmac("sha256", this.#key).update(text).digest("hex").slice(0, codeChars)
  }

  /** Makes the id of a session that a node opens: `3-q3ZtP0aV8nLrYw2mXk5JdB-8d1f6e0c2b7a4953`. */
  make(node: number): string {
    const text = `${node}-${RandomId.make(randomChars)}`
    return `${text}-${this.#code(text)}`
  }

  /** Whether a node of the fleet has made the id. */
  isKnown(id: string): boolean {
    if (id.length > 64 || !pattern.test(id)) return false
    const end = id.length - codeChars
    return timingSafeEqual(Buffer.from(id.slice(end)), Buffer.from(this.#code(id.slice(0, end - 1))))
  }
}
