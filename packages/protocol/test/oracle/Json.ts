/** Generates JSON values with strings and keys that often cause errors. */
import type { JsonObject } from "@skein/protocol/JsonRpc"
import type * as Random from "./Random.ts"

/** Unusual strings, and strings with a meaning elsewhere. */
export const strings: ReadonlyArray<string> = [
  "",
  " ",
  "a",
  "name",
  "2025-01-12T15:00:58Z",
  "ünïcödé",
  "日本語",
  "\u{1f9f6}",
  "\u0000",
  "line\nbreak",
  "\u2028",
  "\ud800",
  "\"quoted\\",
  "__proto__",
  "constructor",
  "null",
  "0",
  "x".repeat(300),
  "text",
  "object",
  "complete",
  "-32600"
]

/** Unusual keys that are not names of the protocol. */
export const keys: ReadonlyArray<string> = [
  "x-extra",
  "",
  "__proto__",
  "constructor",
  "toString",
  "hasOwnProperty",
  "com.example/key",
  "a.b/c",
  "ключ",
  "\u{1f511}",
  "0",
  "two words"
]

/** Generates an integer, sometimes a large safe one. */
export const integer = (random: Random.Random): number =>
  random.chance(0.5)
    ? random.below(2_000) - 1_000
    : random.pick([0, 1, -1, 2 ** 31, -(2 ** 31), Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER])

/** Generates a number; half of them are integers. */
export const number = (random: Random.Random): number =>
  random.chance(0.5) ? integer(random) : random.pick([0.5, -0.25, 1e-7, 1e21, 0.1 + 0.2, random.next()])

/** Generates a short text; half of them are from {@link strings}. */
export const string = (random: Random.Random): string => {
  if (random.chance(0.5)) return random.pick(strings)
  let value = ""
  for (let length = random.below(8); length > 0; length--) {
    value += String.fromCodePoint(32 + random.below(random.chance(0.8) ? 95 : 50_000))
  }
  return value
}

/**
 * Generates a key: any text except a single character that JSON must escape. V8 13.6 (Node 24) misreads such a key:
 * after `JSON.parse('{"a":1,"\\\\":2}')` it reads the second key of `{"a":1,"\\ud800":2}` as a backslash while the
 * shape of the first object is cached. That would make tests fail intermittently.
 */
export const key = (random: Random.Random): string => {
  const text = string(random)
  return text.length === 1 && JSON.stringify(text).length > 3 ? `${text}${text}` : text
}

/** Sets an own member, `__proto__` included, as `JSON.parse` does. */
export const put = (object: Record<string, unknown>, key: string, value: unknown): void => {
  if (key === "__proto__") {
    Object.defineProperty(object, key, { value, enumerable: true, configurable: true, writable: true })
  } else {
    object[key] = value
  }
}

/** Generates a JSON value of at most `depth` levels. */
export const value = (random: Random.Random, depth = 4): unknown => {
  switch (random.below(depth > 0 ? 7 : 5)) {
    case 0:
      return null
    case 1:
      return random.chance(0.5)
    case 2:
      return integer(random)
    case 3:
      return number(random)
    case 4:
      return string(random)
    case 5:
      return Array.from({ length: random.below(4) }, () => value(random, depth - 1))
    default: {
      const object: Record<string, unknown> = {}
      for (let members = random.below(4); members > 0; members--) {
        put(object, random.chance(0.5) ? key(random) : random.pick(keys), value(random, depth - 1))
      }
      return object
    }
  }
}

/** Returns the path of the first difference of two JSON values, or `undefined` where they are equal. */
export const difference = (left: unknown, right: unknown, path = "/"): string | undefined => {
  if (typeof left !== "object" || left === null || typeof right !== "object" || right === null) {
    return left === right ? undefined : path
  }
  if (Array.isArray(left) !== Array.isArray(right)) return path
  const names = Object.keys(left)
  const others = Object.keys(right)
  if (names.length !== others.length) return `${path}: ${JSON.stringify(names)} or ${JSON.stringify(others)}`
  for (const name of names) {
    const inside = `${path}${JSON.stringify(name)}/`
    if (!Object.hasOwn(right, name)) return inside
    const found = difference((left as JsonObject)[name], (right as JsonObject)[name], inside)
    if (found !== undefined) return found
  }
  return undefined
}

/** Returns a copy with one change: a replaced, removed or added value. */
export const mutate = (random: Random.Random, before: unknown): unknown => {
  if (typeof before !== "object" || before === null || random.chance(0.15)) return value(random, 2)
  if (Array.isArray(before)) {
    if (before.length === 0 || random.chance(0.2)) return [...before, value(random, 2)]
    const at = random.below(before.length)
    return before.map((item, index) => index === at ? mutate(random, item) : item)
  }
  const names = Object.keys(before)
  const copy: Record<string, unknown> = {}
  const at = names.length === 0 || random.chance(0.15) ? undefined : random.pick(names)
  for (const name of names) {
    const member = (before as JsonObject)[name]
    if (name !== at) put(copy, name, member)
    else if (!random.chance(0.25)) put(copy, name, mutate(random, member))
  }
  if (at === undefined) put(copy, random.pick(keys), value(random, 2))
  return copy
}
