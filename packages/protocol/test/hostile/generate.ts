/**
 * Random schemas and values that try to make a validation take long: a keyword, repeated in one of several ways, and a
 * value on which it works.
 */

type Json = unknown

/** Seeded random choices: the same in every run. */
interface Choices {
  readonly next: (below: number) => number
  readonly of: <A>(list: ReadonlyArray<A>) => A
}

const choicesOf = (seed: number): Choices => {
  let state = Math.imul(seed, 2_654_435_761) >>> 0
  const next = (below: number): number => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0
    return Math.floor((state / 0x1_0000_0000) * below)
  }
  return { next, of: (list) => list[next(list.length)]! }
}

export const many = <A>(length: number, make: (index: number) => A): Array<A> =>
  Array.from({ length }, (_, index) => make(index))

export const members = (length: number, make: (index: number) => readonly [string, Json]): Json =>
  Object.fromEntries(many(length, make))

const nest = (depth: number, wrap: (inner: Json) => Json, inner: Json): Json => {
  let value = inner
  for (let at = 0; at < depth; at++) value = wrap(value)
  return value
}

/** A hostile schema with a value. */
export interface Case {
  readonly name: string
  readonly schema: Json
  readonly value: Json
}

const letters = ["a", "ab", "é", "一", "😀", "a ", "1", "~", "a1_ "]

/** The digits of these texts are equal hashes in some JavaScript engines. */
const digits = (index: number): string => String((index + 1) * 131_072)

type Make = (choices: Choices, size: number) => Json

const texts: Readonly<Record<string, Make>> = {
  "a long text": ({ of }, size) => of(letters).repeat(size),
  "a long text with another end": ({ of }, size) => `${of(letters).repeat(size)}!`
}

const scalar: ReadonlyArray<(index: number) => Json> = [
  // Neither integers nor fractions: `JSON.parse` reads 1e999 as an infinity.
  () => -0,
  (index) => index,
  (index) => index * 65_536,
  (index) => index + 0.5,
  (index) => 1e308 / (index + 1),
  (index) => `text ${index}`,
  digits,
  () => "same",
  (index) => `${"x".repeat(16_400)}${index}`,
  (index) => `${"x".repeat(200)}${index}`,
  (index) => `${"1".repeat(15_000)}${index}`
]

const sized = (size: number, make: (index: number) => Json): Array<Json> => {
  const length = JSON.stringify(make(0)).length + 1
  return many(Math.max(2, Math.floor(size / length)), make)
}

const lists: Readonly<Record<string, Make>> = {
  scalars: (choices, size) => sized(size, choices.of(scalar)),
  "empty objects": (_, size) => sized(size, () => ({})),
  "small objects": (_, size) => sized(size, (index) => ({ a: index, b: "b" })),
  "small lists": (_, size) => sized(size, (index) => [index, "b"]),
  "deep lists": (_, size) => sized(size, (index) => nest(30, (inner) => [inner], index)),
  "a few long texts": (_, size) => many(4, (index) => "x".repeat(size >> 2) + index),
  "two large lists": (_, size) => many(2, (last) => [...sized(size >> 1, (index) => [index]), last]),
  "wide objects": (_, size) => many(4, () => members(size >> 5, (index) => [`k${index}`, index]))
}

const objects: Readonly<Record<string, Make>> = {
  "many members": (_, size) => members(size >> 3, (index) => [`k${index}`, index]),
  "many digits": (_, size) => members(size >> 4, (index) => [digits(index), index]),
  "long keys of digits": (_, size) => members(1 + (size >> 14), (index) => [`${"1".repeat(16_400)}${index}`, index]),
  "long keys": (_, size) => members(1 + (size >> 14), (index) => [`${"k".repeat(16_400)}${index}`, index]),
  "members that are lists": (_, size) => members(size >> 4, (index) => [`k${index}`, [index]])
}

const fragments: ReadonlyArray<(choices: Choices) => string> = [
  () => "(?:\\b|\\B)",
  () => "(?:^|$|\\b|\\B)",
  () => "a?",
  () => "(?:a|a|a|a)",
  () => "(?:a*)*",
  () => "(?:)",
  () => "(?:(?:){1000000})",
  () => "(?:\\w|\\d|\\s|.)",
  () => "[\\p{L}\\p{N}]",
  () => "[^a]?",
  () => ".*",
  () => "x",
  ({ next }) => `[${many(10 + next(900), (index) => String.fromCodePoint(0x2_0000 - 2 * index)).join("")}]?`,
  ({ next }) => "a".repeat(1 + next(300)),
  // Classes of surrogate pairs, which `RegExp` compiles slowly.
  ({ next, of }) => of(["\\p{L}", "[\\p{Cn}\\p{N}]", ".", "[^a]", "\\S"]).repeat(1 + next(40)),
  ({ next, of }) => of([".", "\\W", "(?:[^a]{3}){3}"]).repeat(1 + next(200)),
  () => `(?:a{${"9".repeat(400)}}){0}`,
  () => `a{${"9".repeat(400)}}`,
  ({ next }) => many(2 + next(100), (index) => `w${index}`).join("|")
]

const patternOf = (choices: Choices): string => {
  const { next, of } = choices
  const part = (): string => {
    const fragment = of(fragments)(choices)
    const count = of(["", "", "*", "+", `{${1 + next(300)}}`, `{0,${1 + next(300)}}`, "{1000000000}"])
    return count === "" ? fragment : `(?:${fragment})${count}`
  }
  return of(["", "^"]) + many(1 + next(3), part).join(of(["", "|"])) + of(["", "x", "$"])
}

/** A keyword that works on a kind of value. */
interface Keyword {
  readonly on: "text" | "list" | "object"
  readonly make: (choices: Choices, value: Json, chars: number) => Json
}

const most = (chars: number, each: number): number => Math.max(1, Math.floor(chars / each))

const keywords: Readonly<Record<string, Keyword>> = {
  minLength: { on: "text", make: (_, value) => ({ minLength: Math.floor((value as string).length * 0.7) }) },
  pattern: { on: "text", make: (choices) => ({ pattern: patternOf(choices) }) },
  "long enum": {
    on: "text",
    make: (_, value, chars) => ({
      enum: many(most(chars, 17_000), (at) => `${(value as string).slice(0, 16_500)}${at}`)
    })
  },
  "short enum": { on: "text", make: () => ({ enum: ["1", "a"] }) },
  const: { on: "text", make: (_, value, chars) => ({ const: (value as string).slice(0, chars >> 1) }) },
  uniqueItems: { on: "list", make: () => ({ uniqueItems: true }) },
  contains: {
    on: "list",
    make: ({ of }) => ({ contains: of([true, false, { const: {} }]), minContains: of([0, 1, 9e9]) })
  },
  unevaluatedItems: {
    on: "list",
    make: ({ of }) => ({
      anyOf: [{ contains: of([true, { type: "integer" }]) }, true],
      unevaluatedItems: of([true, { type: ["integer", "string"] }])
    })
  },
  "enum of {}": { on: "list", make: (_, __, chars) => ({ items: { enum: many(most(chars, 3), () => ({})) } }) },
  "enum of objects": {
    on: "list",
    make: (_, __, chars) => ({ items: { enum: many(most(chars, 16), (a) => ({ a: -a, b: "b" })) } })
  },
  "enum of digits": { on: "list", make: (_, __, chars) => ({ items: { enum: many(most(chars, 15), digits) } }) },
  "const of a list": {
    on: "list",
    make: (_, value, chars) => ({
      const: (value as Array<Json>).slice(0, most(chars, 2 * JSON.stringify((value as Array<Json>)[0]).length))
    })
  },
  multipleOf: { on: "list", make: ({ of }) => ({ items: { multipleOf: of([1e-308, 1, 0.1, 1e308]) } }) },
  "items with a pattern": { on: "list", make: (choices) => ({ items: { pattern: patternOf(choices) } }) },
  "oneOf of items": {
    on: "list",
    make: (_, __, chars) => ({ items: { oneOf: many(most(chars, 20), (at) => ({ const: at })) } })
  },
  minProperties: { on: "object", make: () => ({ minProperties: 1 }) },
  maxProperties: { on: "object", make: ({ of }) => ({ maxProperties: of([0, 1e9]) }) },
  additionalProperties: {
    on: "object",
    make: ({ of }) => ({ additionalProperties: of<Json>([false, true, { type: "integer" }]) })
  },
  propertyNames: {
    on: "object",
    make: ({ of }) => ({ propertyNames: of<Json>([true, { maxLength: 9 }, { pattern: "^(k|[0-9])*$" }]) })
  },
  patternProperties: {
    on: "object",
    make: (choices) => ({ patternProperties: { [patternOf(choices)]: choices.of([true, false]) } })
  },
  "many patternProperties": {
    on: "object",
    make: (_, __, chars) => ({ patternProperties: members(most(chars, 30), (at) => [`^x${at}$`, true]) })
  },
  dependentRequired: {
    on: "object",
    make: (_, __, chars) => ({ dependentRequired: members(most(chars, 20), (at) => [`k${at}`, ["k0"]]) })
  },
  required: { on: "object", make: (_, __, chars) => ({ required: many(most(chars, 12), (at) => `k${at}`) }) },
  if: {
    on: "object",
    make: ({ of }) => ({ if: { minProperties: 1 }, else: false, allOf: [of<Json>([true, { propertyNames: true }])] })
  },
  properties: {
    on: "object",
    make: ({ of }, __, chars) => ({
      properties: members(most(chars, 20), of([(at) => [`k${at}`, {}], (at) => [digits(at), {}]]))
    })
  },
  dependentSchemas: {
    on: "object",
    make: (_, __, chars) => ({ dependentSchemas: members(most(chars, 30), (at) => [`k${at}`, { minProperties: 1 }]) })
  },
  "const of an object": {
    on: "object",
    make: (_, value, chars) => ({
      const: Object.fromEntries(Object.entries(value as object).slice(0, most(chars, 30)))
    })
  },
  unevaluatedProperties: {
    on: "object",
    make: ({ of }) => ({
      anyOf: [{ additionalProperties: of([true, { type: "integer" }]) }, true],
      unevaluatedProperties: of([true, { type: ["integer", "array"] }])
    })
  }
}

/** Ways to apply a schema again and again. */
const repetitions: Readonly<Record<string, (schema: Json, count: number, choices: Choices) => Json>> = {
  once: (schema) => schema,
  allOf: (schema, count) => ({ allOf: many(count, () => schema) }),
  anyOf: (schema, count) => ({ anyOf: many(count, () => ({ allOf: [schema, false] })) }),
  oneOf: (schema, count) => ({ oneOf: many(count, () => ({ not: schema })) }),
  references: (schema, count) => ({
    $defs: { s: schema },
    allOf: many(Math.min(count, 4_500), () => ({ $ref: "#/$defs/s" }))
  }),
  "a tower": (schema, _, choices) => nest(1 + choices.next(40), (inner) => ({ allOf: [inner, true] }), schema),
  unevaluated: (schema, count) => ({
    allOf: many(count, () => schema),
    unevaluatedItems: true,
    unevaluatedProperties: true
  }),
  "a recursion": (schema) => ({ anyOf: [schema, true], items: { $ref: "#" }, additionalProperties: { $ref: "#" } })
}

const keysOf = <K extends string>(record: Readonly<Record<K, unknown>>): Array<K> => Object.keys(record) as Array<K>

const sources = { text: texts, list: lists, object: objects }

/** Makes one case of at most about `size` characters in the value. The schema has up to 262,144. */
export const generate = (seed: number, size: number): Case => {
  const choices = choicesOf(seed)
  const keyword = choices.of(keysOf(keywords))
  const { make, on } = keywords[keyword]!
  const kind = choices.of(keysOf(sources[on]))
  const repetition = choices.of(keysOf(repetitions))
  const value = sources[on][kind]!(choices, size >> choices.of([0, 0, 3, 8]))
  const room = choices.of([240_000, 20_000, 100])
  const isOne = repetition === "once" || repetition === "a recursion" || repetition === "a tower"
  const isShared = repetition === "references"
  const schema = make(choices, value, isOne ? room : isShared ? room >> 1 : choices.of([20, 500]))
  const each = isShared ? 24 : JSON.stringify(schema).length + 30
  const count = Math.min(9_000, Math.floor((isShared ? room >> 1 : room) / each))
  return {
    name: `seed ${seed}: ${keyword}, ${repetition}, on ${kind}`,
    schema: repetitions[repetition]!(schema, Math.max(1, count), choices),
    value
  }
}
