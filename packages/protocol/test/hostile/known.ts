/** Cases that blocked a process for seconds to minutes, or would without a bound. */
import { type Case, many, members } from "./generate.ts"

const wide = (size: number) => members(size, (index) => [`k${index}`, index])

export const known: ReadonlyArray<Case> = [
  {
    name: "280 assertions that each position passes",
    schema: { pattern: "(?:\\b|\\B){280}x" },
    value: "a ".repeat(100_000)
  },
  {
    name: "9,000 times minProperties on 90,000 members",
    schema: { allOf: many(9_000, () => ({ minProperties: 1 })) },
    value: wide(90_000)
  },
  {
    name: "6,000 times anyOf with additionalProperties on 20,000 members",
    schema: { anyOf: many(6_000, () => ({ additionalProperties: false })) },
    value: wide(20_000)
  },
  {
    name: "an enum of 80,000 empty objects",
    schema: { items: { enum: many(80_000, () => ({})) } },
    value: many(2_000, () => ({ a: 1 }))
  },
  {
    name: "9,000 times uniqueItems on a megabyte of text",
    schema: { allOf: many(9_000, () => ({ uniqueItems: true })) },
    value: ["x".repeat(1_000_000), "y".repeat(1_000_000)]
  },
  {
    name: "3,000 references to a const of 130,000 characters",
    schema: {
      $defs: { c: { const: { a: "x".repeat(130_000) } } },
      allOf: many(3_000, () => ({ $ref: "#/$defs/c" }))
    },
    value: { a: "x".repeat(130_000) }
  },
  {
    name: "a character class of 30,000 characters in descending order",
    schema: { pattern: `[${many(30_000, (index) => String.fromCodePoint(0x3_0000 - 2 * index)).join("")}]` },
    value: "a"
  },
  {
    name: "an empty group that is repeated 10^15 times",
    schema: { pattern: "(?:(?:){1000000000}){1000000}" },
    value: "a"
  },
  {
    name: "many automata of 1,800 instructions",
    schema: { allOf: many(5_000, (index) => ({ pattern: `(?:a?){900}b${index}` })) },
    value: "a"
  },
  {
    name: "many Unicode property escapes",
    schema: { pattern: `[${"\\p{L}".repeat(40_000)}]` },
    value: "a"
  },
  {
    name: "100 nested values of enum with a reference each",
    schema: {
      $defs: {
        c: many(100, () => undefined).reduce<unknown>((inner) => ({ enum: [inner] }), { const: "x".repeat(100_000) })
      },
      allOf: many(100, (index) => ({ $ref: `#/$defs/c${"/enum/0".repeat(index)}` }))
    },
    value: 1
  },
  {
    name: "uniqueItems of long texts with equal hashes",
    schema: { allOf: many(1_000, () => ({ uniqueItems: true })) },
    value: many(200, (index) => `${"x".repeat(16_400)}${index}`)
  },
  {
    name: "evaluated members that are merged 900 times",
    schema: { allOf: many(900, () => ({ additionalProperties: true })), unevaluatedProperties: false },
    value: wide(90_000)
  },
  {
    name: "a text of 400,000 letters for a word of 250",
    schema: { allOf: many(500, () => ({ pattern: "a".repeat(250) + "b" })) },
    value: "a".repeat(400_000)
  },
  {
    name: "10,000 properties that are digits with equal hashes",
    schema: { properties: members(9_900, (index) => [String((index + 1) * 131_072), {}]) },
    value: members(9_900, (index) => [String((index + 1) * 131_072), 1])
  },
  {
    name: "16 classes of letters, which RegExp compiles for seconds",
    schema: { pattern: "\\p{L}".repeat(16) },
    value: `${"one ".repeat(100)}一`
  },
  {
    name: "20 patterns of 900 characters of any kind",
    schema: { allOf: many(20, (index) => ({ pattern: `^${".".repeat(900)}${index}` })) },
    value: "一".repeat(1_000)
  },
  {
    name: "a repetition with a count of 400 digits",
    schema: { pattern: `^a{${"9".repeat(400)}}` },
    value: "a".repeat(400_000)
  },
  {
    name: "a list of 500,000 objects that is measured for its steps",
    schema: { items: { allOf: many(20, () => ({ multipleOf: 1 })) } },
    value: many(500_000, () => ({}))
  },
  {
    name: "6,000 enums on a text of 16,000 digits",
    schema: { items: { allOf: many(6_000, () => ({ enum: ["1"] })) } },
    value: ["1".repeat(16_000)]
  },
  {
    name: "4,000 times properties on a key of a million digits",
    schema: { allOf: many(4_000, () => ({ properties: { 1: {} } })) },
    value: { ["1".repeat(1_000_000)]: 1 }
  },
  {
    name: "9,000 times uniqueItems on texts of 16,000 digits",
    schema: { allOf: many(9_000, () => ({ uniqueItems: true })) },
    value: many(60, (index) => `${1_000 + index}`.repeat(4_000))
  },
  {
    name: "4,500 references to a const of 100,000 characters, for 20 texts",
    schema: {
      $defs: { c: { const: "x".repeat(100_000) } },
      items: { allOf: many(4_500, () => ({ $ref: "#/$defs/c" })) }
    },
    value: many(20, () => "x".repeat(100_000))
  },
  {
    name: "4,500 references to a const of 50,000 numbers",
    schema: { $defs: { c: { const: many(50_000, () => 0) } }, allOf: many(4_500, () => ({ $ref: "#/$defs/c" })) },
    value: many(50_000, () => 0)
  },
  {
    name: "9,000 times uniqueItems on a list of a list",
    schema: { allOf: many(9_000, () => ({ uniqueItems: true })) },
    value: [many(50_000, (index) => index)]
  },
  {
    name: "5,000 times minLength on 400,000 characters",
    schema: { allOf: many(5_000, () => ({ minLength: 399_999 })) },
    value: "a".repeat(400_000)
  },
  {
    name: "5,000 times a pattern for RegExp on 250,000 characters",
    schema: { allOf: many(5_000, () => ({ pattern: "^a*$" })) },
    value: "a".repeat(250_000)
  },
  {
    name: "90 times required of 100 names on 1,000 objects",
    schema: { items: { allOf: many(90, () => ({ required: many(100, (at) => `k${at}`) })) } },
    value: many(1_000, () => members(100, (at) => [`k${at}`, at]))
  },
  {
    name: "50 times multipleOf with large integers on 5,000 numbers",
    schema: { items: { allOf: many(50, () => ({ multipleOf: 1e-308 })) } },
    value: many(5_000, (index) => 1e308 / (index + 1))
  },
  {
    name: "90 classes with a Unicode property escape each",
    schema: { pattern: `(?:${many(90, (at) => `[\\p{L}${String.fromCodePoint(0x4e00 + at)}]`).join("|")})+x` },
    value: "一".repeat(100)
  }
]
