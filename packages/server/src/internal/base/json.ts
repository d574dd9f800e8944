/**
 * JSON values: any value as JSON of a bounded size, and objects without `undefined` members.
 */
import * as Json from "@skein/protocol/Json"
import { clip } from "@skein/protocol/Text"
import * as Redactable from "effect/Redactable"

/** The number of nested objects and arrays that are followed. */
const maxDepth = 16

/**
 * Turns any value into JSON whose text has about `max` characters at most. Longer texts are cut, and further members
 * and items are left out. It never throws. A value without a JSON form becomes a text that describes it.
 */
export const toBoundedJson = (value: unknown, max: number): unknown => new Writer(max).write(value, [])

class Writer {
  #left: number

  constructor(max: number) {
    this.#left = max
  }

  write(value: unknown, above: ReadonlyArray<object>): unknown {
    switch (typeof value) {
      case "string":
        return this.#text(value)
      case "number":
        return this.#spent(8, Number.isFinite(value) ? value : String(value))
      case "boolean":
        return this.#spent(5, value)
      case "object":
        return value === null ? this.#spent(4, null) : this.#object(value, above)
      default:
        return this.#text(described(value))
    }
  }

  #spent<A>(cost: number, value: A): A {
    this.#left -= cost
    return value
  }

  /** Writes as much of a text as the remaining size allows. Characters that JSON escapes count as one. */
  #text(text: string): string {
    const available = Math.max(0, this.#left)
    const kept = clip(text, available)
    this.#left -= kept.length + 2
    return kept
  }

  #object(value: object, above: ReadonlyArray<object>): unknown {
    if (above.includes(value)) return this.#text("[Circular]")
    if (above.length >= maxDepth) return this.#text("[…]")
    const inside = [...above, value]
    try {
      return this.#members(value, inside)
    } catch {
      return this.#text("[Unreadable]")
    }
  }

  #members(value: object, inside: ReadonlyArray<object>): unknown {
    const redacted: unknown = Redactable.redact(value)
    if (redacted !== value) return this.write(redacted, inside)
    const { toJSON } = value as { readonly toJSON?: unknown }
    if (typeof toJSON === "function") {
      const written: unknown = toJSON.call(value, "")
      if (written !== value) return this.write(written, inside)
    }
    if (value instanceof Error) return this.#text(`${value.name}: ${value.message}`)
    if (value instanceof Map) return this.#record(value, inside)
    if (Array.isArray(value) || value instanceof Set) return this.#items(value, inside)
    return this.#record(Object.entries(value), inside)
  }

  #items(items: Iterable<unknown>, inside: ReadonlyArray<object>): ReadonlyArray<unknown> {
    const written: Array<unknown> = []
    for (const item of items) {
      if (this.#left <= 0) break
      written.push(this.write(item, inside))
      this.#left--
    }
    return written
  }

  #record(members: Iterable<readonly [unknown, unknown]>, inside: ReadonlyArray<object>): object {
    const written: Array<readonly [string, unknown]> = []
    for (const [key, member] of members) {
      if (this.#left <= 0) break
      if (member === undefined) continue
      const name = this.#text(typeof key === "string" ? key : described(key))
      written.push([name, this.write(member, inside)])
      this.#left -= 2
    }
    return Object.fromEntries(written)
  }
}

const described = (value: unknown): string => {
  try {
    return typeof value === "function" ? `[Function ${value.name}]` : String(value)
  } catch {
    return "[Unreadable]"
  }
}

/** `A` without `undefined` in its members: optional members are either absent or have a value. */
export type Defined<A> = { readonly [K in keyof A]: Exclude<A[K], undefined> }

/**
 * Copies an object without its `undefined` members. Options may be `undefined`; members of protocol messages may not.
 */
export const omitUndefined = <A extends object>(value: A): Defined<A> => {
  const defined: Record<string, unknown> = {}
  for (const [name, member] of Object.entries(value)) {
    if (member !== undefined) defined[name] = member
  }
  return defined as Defined<A>
}

/** The JSON of a value, or `undefined` if it has none. */
export const jsonOf = (value: unknown): string | undefined => {
  try {
    return Json.stringify(value)
  } catch {
    return undefined
  }
}
