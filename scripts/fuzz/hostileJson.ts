/**
 * Makes JSON texts that a hostile peer may send: values of the model's schemas with a few changes, and values that
 * often cause errors, such as `null`, numbers outside every range, and nesting deeper than the stack.
 */
import * as Arbitrary from "effect/Arbitrary"
import * as Effect from "effect/Effect"
import type * as Schema from "effect/Schema"
import * as Json from "../../packages/protocol/test/oracle/Json.ts"
import type * as Random from "../../packages/protocol/test/oracle/Random.ts"

export type Anything = any

const samplesOf = new WeakMap<object, Map<string, ReadonlyArray<unknown>>>()

/** Values of a schema, the same ones in every run. */
export const samples = (schema: Schema.Codec<unknown, unknown>, name: string): ReadonlyArray<unknown> => {
  const known = samplesOf.get(schema.ast) ?? new Map<string, ReadonlyArray<unknown>>()
  samplesOf.set(schema.ast, known)
  let values = known.get(name)
  if (values === undefined) {
    values = Effect.runSync(
      Arbitrary.sampleEffect(Arbitrary.schema(schema as Schema.Codec<unknown>), { count: 24, seed: name, size: 4 })
    )
    known.set(name, values)
  }
  return values
}

// `JSON.stringify` cannot write these, so a placeholder is replaced by their text.
const token = (kind: string, size = 0): string => `@@${kind}:${size}@@`

const opaque: { readonly [kind: string]: (size: number) => string } = {
  arrays: (size) => "[".repeat(size) + "]".repeat(size),
  objects: (size) => `${"{\"a\":".repeat(size)}1${"}".repeat(size)}`,
  chain: (size) => `${"{\"a\":".repeat(size)}{}${"}".repeat(size)}`,
  schemas: (size) => `${"{\"type\":\"object\",\"properties\":{\"a\":".repeat(size)}{}${"}}".repeat(size)}`,
  items: (size) => `${"{\"type\":\"array\",\"items\":".repeat(size)}{}${"}".repeat(size)}`,
  content: (size) =>
    `${"[{\"type\":\"tool_result\",\"toolUseId\":\"a\",\"content\":".repeat(size)}[]${"}]".repeat(size)}`,
  infinite: () => "1e999",
  huge: () => "1e308",
  tiny: () => "5e-324",
  unsafe: () => "9007199254740993",
  negativeZero: () => "-0",
  twice: () => "{\"a\":1,\"a\":null,\"__proto__\":{\"b\":1},\"__proto__\":null}",
  proto: () => "{\"__proto__\":{\"name\":1,\"type\":\"text\"},\"constructor\":null,\"toString\":1,\"valueOf\":{}}"
}

const depths = [50, 400, 1_000, 2_500, 6_000, 15_000, 40_000]

const fixed: ReadonlyArray<unknown> = [
  null,
  true,
  false,
  0,
  -1,
  1.5,
  1e15,
  2 ** 31,
  -(2 ** 31),
  2 ** 53,
  8.64e15 + 1,
  "",
  [],
  {},
  [null],
  { toString: 1, valueOf: {} },
  { toString: null },
  JSON.parse("{\"then\":{}}"),
  { length: 1e9 },
  { toJSON: {} },
  "\u001b[31m\u0007\u202e",
  "\ud800",
  "9".repeat(400),
  "1e999",
  "-1",
  "+275760-09-13T00:00:00.001Z",
  "0000-00-00T00:00:00Z",
  "javascript:alert(1)",
  "file:///etc/passwd",
  "http://[::1",
  "data:image/png;base64,!!!!",
  "data:,",
  "x".repeat(20_000),
  Array.from({ length: 300 }, () => null)
]

/** One value that often causes errors. */
export const bomb = (random: Random.Random): unknown => {
  if (random.chance(0.55)) return random.pick(fixed)
  const kind = random.pick(Object.keys(opaque))
  return token(kind, random.pick(depths))
}

/** Writes a value as JSON, with the placeholders of `bomb` replaced. */
export const stringify = (value: unknown): string =>
  (JSON.stringify(value) ?? "null").replace(
    /"@@([a-zA-Z]+):(\d+)@@"(:?)/g,
    (all, kind: string, size: string, colon: string) =>
      colon === "" ? opaque[kind]?.(Number(size)) ?? all : `"${kind}"${colon}`
  )

/** Replaces one value at any depth, more often near the root. */
const plant = (random: Random.Random, before: unknown, planted: unknown): unknown => {
  if (typeof before !== "object" || before === null || random.chance(0.12)) return planted
  if (Array.isArray(before)) {
    if (before.length === 0 || random.chance(0.1)) return [...before, planted]
    const at = random.below(before.length)
    return before.map((item, index) => index === at ? plant(random, item, planted) : item)
  }
  const names = Object.keys(before)
  const copy: Record<string, unknown> = {}
  for (const name of names) Json.put(copy, name, (before as Anything)[name])
  if (names.length === 0 || random.chance(0.05)) Json.put(copy, random.pick(Json.keys), planted)
  else {
    const name = random.pick(names)
    Json.put(copy, name, plant(random, copy[name], planted))
  }
  return copy
}

/** A copy of a value with up to three changes. A quarter of the values stay as they are. */
export const damage = (random: Random.Random, value: unknown): unknown => {
  let damaged = value
  if (random.chance(0.25)) return damaged
  for (let edits = 1 + random.below(3); edits > 0; edits--) {
    damaged = random.chance(0.5) ? plant(random, damaged, bomb(random)) : Json.mutate(random, damaged)
  }
  return damaged
}

/** Changes a few characters of a text. */
export const garble = (random: Random.Random, text: string, pieces: ReadonlyArray<string>): string => {
  let garbled = text
  for (let edits = random.below(3); edits > 0; edits--) {
    const at = random.below(garbled.length + 1)
    const end = at + random.below(random.chance(0.8) ? 3 : 30)
    garbled = garbled.slice(0, at) + (random.chance(0.7) ? random.pick(pieces) : "") + garbled.slice(end)
  }
  return garbled
}

/** Pieces of JSON. */
export const jsonPieces: ReadonlyArray<string> = [
  "{",
  "}",
  "[",
  "]",
  ",",
  ":",
  "\"",
  "\\",
  "null",
  "true",
  "-",
  "1e999",
  "0",
  "\"id\"",
  "\"__proto__\":",
  "\u0000",
  "\\ud800",
  " ",
  "\"\"",
  "{}",
  "[]",
  "\n",
  "\r",
  "\ufeff"
]
