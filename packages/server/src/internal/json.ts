/**
 * Any value as JSON of a bounded size: what an author logs may be anything, and large.
 */
import * as Redactable from "effect/Redactable"

/** How deep objects and arrays are followed. */
const maxDepth = 16

/**
 * The value as JSON whose text is about `max` characters at most: longer texts are cut, and members and items beyond are left
 * out. It never throws; what has no JSON form is said as text.
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

  /** A text, as much of it as there is room for. What JSON escapes counts as one character more. */
  #text(text: string): string {
    const room = Math.max(0, this.#left)
    const whole = text.length <= room
    const kept = whole ? text : `${text.slice(0, room).replace(/[\ud800-\udbff]$/, "")}…`
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

/** `A` with the optional members that may be `undefined` narrowed to members that are absent or have a value. */
export type Defined<A> = { readonly [K in keyof A]: Exclude<A[K], undefined> }

/** A copy without the members that are `undefined`. */
export const omitUndefined = <A extends object>(value: A): Defined<A> => {
  const defined: Record<string, unknown> = {}
  for (const [name, member] of Object.entries(value)) {
    if (member !== undefined) defined[name] = member
  }
  return defined as Defined<A>
}
