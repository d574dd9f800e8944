/** Any JSON value, with the strings and keys that trip up careless code. */
import type { JsonObject } from "@skein/protocol/JsonRpc"
import type * as Random from "./Random.ts"

/** Strings that are unusual, or that mean something somewhere else. */
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

/** Keys that are unusual, and are not the name of anything in the protocol. */
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

/** Integers, the largest that are safe included. */
export const integer = (random: Random.Random): number =>
  random.chance(0.5)
    ? random.below(2_000) - 1_000
    : random.pick([0, 1, -1, 2 ** 31, -(2 ** 31), Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER])

/** Numbers, half of them integers. */
export const number = (random: Random.Random): number =>
  random.chance(0.5) ? integer(random) : random.pick([0.5, -0.25, 1e-7, 1e21, 0.1 + 0.2, random.next()])

/** Short text, half of it from the list of strings. */
export const string = (random: Random.Random): string => {
  if (random.chance(0.5)) return random.pick(strings)
  let value = ""
  for (let length = random.below(8); length > 0; length--) {
    value += String.fromCodePoint(32 + random.below(random.chance(0.8) ? 95 : 50_000))
  }
  return value
}

/**
 * A key that may be any text, but for one character that JSON must escape. V8 13.6 (Node 24) misreads such a key: after
 * `JSON.parse('{"a":1,"\\\\":2}')` the second key of `{"a":1,"\\ud800":2}` is read as a backslash, as long as the first
 * object's shape is remembered. That would be a failure that comes and goes.
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

/** Any JSON value, at most `depth` levels deep. */
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

/** Where two JSON values differ, as a path that starts with a slash; `undefined` where they are the same. */
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

/** A copy with one place changed: replaced by any JSON value, left out, or joined by another member. */
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
