/** The words of a command line as arguments of a tool, by its input schema. */
import { assert, describe, it } from "@effect/vitest"
import * as Json from "@skein/protocol/Json"
import type { Tool } from "@skein/protocol/Tool"
import { counted, hostileSchemas, sizeOf } from "../../protocol/test/reads.ts"
import { argumentsOf } from "../src/internal/base/format.ts"
import * as Result from "effect/Result"
import { type Assignment, parseWords } from "../src/internal/base/givenArguments.ts"
import { suggestion } from "../src/internal/connection/suggestion.ts"
import { argumentsProblem, toolArguments } from "../src/internal/calls/toolArguments.ts"

/** The words as they are parsed. */
const words = (...all: ReadonlyArray<string>): ReadonlyArray<Assignment> =>
  all.map((word) => {
    const [, name = "", colon, text = ""] = /^([^=]+?)(:?)=([^]*)$/.exec(word)!
    return { name, given: colon === ":" ? { value: JSON.parse(text) as unknown } : { text } }
  })

const tool = (inputSchema: object): Tool => ({
  name: "brew",
  inputSchema: { type: "object", ...inputSchema } as Tool["inputSchema"]
})

const brew = tool({
  properties: {
    tea: { enum: ["assam", "sencha"] },
    cups: { type: "integer" },
    sugar: { type: "number" },
    milk: { type: "boolean" },
    guests: { type: "array", items: { type: "string" } },
    sizes: { type: "array", items: { $ref: "#/$defs/Size" } },
    note: { type: "string" },
    id: { anyOf: [{ type: "string" }, { type: "number" }] },
    until: { type: ["integer", "null"] },
    address: { type: "object" },
    any: {},
    self: { $ref: "#/properties/self" }
  },
  required: ["tea"],
  $defs: { Size: { type: "integer" } }
})

describe("the schema of a hostile server", () => {
  it.each(hostileSchemas)("is read about once: %s", (_, schema) => {
    const { reads, value } = counted(tool({ ...schema, additionalProperties: true }))
    toolArguments(value, words("p0=x", "a=x", "other=x"))
    argumentsOf(value)
    // For each of three words, and in the lists of arguments.
    assert.isBelow(reads(), 12 * sizeOf(schema) + 20_000)
  })

  it("may have more values than a call may have arguments", () => {
    const values = Array.from({ length: 200_000 }, (_, at) => `v${at}`)
    assert.deepStrictEqual(
      toolArguments(tool({ properties: { a: { enum: values } } }), words("a=v199999")),
      Result.succeed({ a: "v199999" })
    )
  })

  it("may require any number of arguments, of which a message names some", () => {
    const required = Array.from({ length: 50_000 }, (_, at) => `a${at}`)
    const failed = toolArguments(tool({ required }), [])
    assert.isTrue(Result.isFailure(failed) && failed.failure.length < 500 && failed.failure.includes("a19, …"))
  })
})

const converted = (given: Tool, ...all: ReadonlyArray<string>): unknown =>
  Result.getOrThrow(toolArguments(given, words(...all)))

const refused = (given: Tool, ...all: ReadonlyArray<string>): string => {
  const result = toolArguments(given, words(...all))
  return Result.isFailure(result) ? result.failure : assert.fail(JSON.stringify(result.success))
}

describe("the arguments of a tool as words", () => {
  it("are refused where an integer beyond 2^53 would be rounded", () => {
    const advice = "is an integer beyond 2^53, which would be rounded: write the arguments as one JSON object"
    for (const name of ["cups", "sugar", "sizes", "until"]) {
      assert.strictEqual(refused(brew, "tea=sencha", `${name}=1915883588174806058`), `The argument ${name} ${advice}`)
    }
    assert.strictEqual(
      refused(brew, "tea=sencha", "sizes=1", "sizes=-9007199254740993"),
      `The argument sizes ${advice}`
    )
    const id = "1915883588174806058"
    assert.deepStrictEqual(converted(brew, "tea=sencha", `id=${id}`, `note=${id}`, `any=${id}`), {
      tea: "sencha",
      id,
      note: id,
      any: id
    })
    const given = parseWords("tool", [`id:=${id}`])
    assert.strictEqual(Result.isFailure(given) ? given.failure : undefined, `The tool's argument id ${advice}`)
  })

  it("are sent with the digits of integers beyond 2^53 in a JSON object", () => {
    for (
      const [words, text] of [[[`{"a":1915883588174806058}`], undefined], [
        [`a:={"b":1915883588174806058}`],
        "a"
      ]] as const
    ) {
      const given = Result.getOrThrow(parseWords("tool", words))
      const value = text === undefined
        ? given
        : Result.getOrThrow(toolArguments(tool({ properties: { a: {} } }), given as ReadonlyArray<Assignment>))
      assert.include(Json.stringify(value), "1915883588174806058")
    }
  })

  it("are converted by the types of the input schema", () => {
    const all = ["tea=sencha", "cups=2", "sugar=0.5", "milk=no", "note=12", "any=12", "until=null"]
    assert.deepStrictEqual(converted(brew, ...all), {
      tea: "sencha",
      cups: 2,
      sugar: 0.5,
      milk: false,
      note: "12",
      any: "12",
      until: null
    })
    assert.deepStrictEqual(converted(brew, "tea=sencha", "note="), { tea: "sencha", note: "" })
    assert.deepStrictEqual(converted(brew, "tea=sencha", "note=a=b\nc"), { tea: "sencha", note: "a=b\nc" })
  })

  it("are the items of an array, once or repeated", () => {
    assert.deepStrictEqual(converted(brew, "tea=assam", "guests=Ada", "sizes=1", "guests=1", "sizes=2"), {
      tea: "assam",
      guests: ["Ada", "1"],
      sizes: [1, 2]
    })
    assert.deepStrictEqual(converted(brew, "tea=assam", "guests=Ada, Bo"), { tea: "assam", guests: ["Ada, Bo"] })
  })

  it("take JSON after :=", () => {
    assert.deepStrictEqual(converted(brew, "tea=assam", "address:={\"city\":\"Kyoto\"}", "sizes:=[]", "any:=12"), {
      tea: "assam",
      address: { city: "Kyoto" },
      sizes: [],
      any: 12
    })
  })

  it("keep a text that a number would change, where the schema takes both", () => {
    assert.deepStrictEqual(converted(brew, "tea=assam", "id=007"), { tea: "assam", id: "007" })
    assert.deepStrictEqual(converted(brew, "tea=assam", "id=7"), { tea: "assam", id: 7 })
  })

  it("may be others than those of the schema only where it says so", () => {
    assert.deepStrictEqual(converted(tool({ additionalProperties: { type: "number" } }), "a=1"), { a: 1 })
    assert.deepStrictEqual(converted(tool({ additionalProperties: true }), "a=1"), { a: "1" })
    const open = tool({ properties: { cups: { type: "integer" } }, additionalProperties: true })
    assert.match(refused(open, "cup=1"), /^The tool brew has no argument cup; did you mean cups\? /)
    assert.deepStrictEqual(converted(open, "milk=1"), { milk: "1" })
    assert.strictEqual(refused(tool({}), "a=1"), "The tool brew has no argument a. It takes no arguments")
    const unsafe = converted(tool({ additionalProperties: true }), "__proto__=1") as object
    assert.isTrue(Object.hasOwn(unsafe, "__proto__"))
  })

  it("are refused with the names and the types of the schema, and without their values", () => {
    const messages = [
      [["cup=2", "tea=assam"], /^The tool brew has no argument cup; did you mean cups\? Its arguments are tea: /],
      [["cups=2"], /^The tool brew needs the argument tea\. Its arguments are tea: "assam"\|"sencha", cups\?: integer/],
      [["tea=planted"], /^The argument tea takes one of assam, sencha$/],
      [["tea=assam", "cups=1.5"], /^The argument cups takes an integer$/],
      [["tea=assam", "cups="], /^The argument cups takes an integer$/],
      [["tea=assam", "sugar=planted"], /^The argument sugar takes a number$/],
      [["tea=assam", "milk=planted"], /^The argument milk takes true or false$/],
      [["tea=assam", "until=planted"], /^The argument until takes an integer, or null$/],
      [
        ["tea=assam", "sizes=1", "sizes=planted"],
        /^The argument sizes takes an array, and each of its words must be an i/
      ],
      [
        ["tea=assam", "address=planted"],
        /^The argument address takes an object: write it as JSON, with address:=\{…\}$/
      ],
      [["tea=assam", "tea=sencha"], /^The argument tea is given more than once, and takes one of assam, sencha$/]
    ] as const
    for (const [given, message] of messages) {
      const refusal = refused(brew, ...given)
      assert.match(refusal, message)
      assert.notInclude(refusal, "planted")
    }
  })

  it("are converted for a schema that refers to itself, and for one that is not valid", () => {
    assert.deepStrictEqual(converted(brew, "tea=assam", "self=1"), { tea: "assam", self: "1" })
    assert.deepStrictEqual(converted(tool({ properties: { a: 1 }, required: "a" }), "a=1"), { a: "1" })
  })
})

describe("suggestions", () => {
  it("are names with at most two changes, the nearest first", () => {
    assert.strictEqual(suggestion("brwe", ["boil", "brew", "bread"]), "; did you mean brew?")
    assert.strictEqual(suggestion("Brew", ["boil", "brew"]), "; did you mean brew?")
    assert.strictEqual(suggestion("coffee", ["boil", "brew"]), "")
    assert.strictEqual(suggestion("ab", ["cd"]), "")
    assert.strictEqual(suggestion("brwe", ["brew\u001b"]), "; did you mean brew\\u{1b}?")
    assert.strictEqual(suggestion("x".repeat(65), ["x".repeat(65)]), "")
  })
})

describe("arguments that a schema refuses", () => {
  const many = tool({
    properties: {
      limit: { type: "integer", maximum: 100 },
      opts: { type: "object", properties: { deep: { type: "object", properties: { n: { type: "integer" } } } } }
    },
    required: ["limit"]
  })

  it("are reported with the argument and the bound, and without the value", () => {
    assert.strictEqual(
      argumentsProblem(many, { limit: 12_345 }),
      "The argument limit does not fit: Expected a number of at most 100"
    )
    assert.strictEqual(
      argumentsProblem(many, { limit: 1, opts: { deep: { n: "x" } } }),
      "The argument opts does not fit at deep.n: Expected integer, got string"
    )
    assert.isUndefined(argumentsProblem(many, { limit: 100 }))
    // The server decides, if the schema is of no use.
    assert.isUndefined(argumentsProblem(tool({ $ref: "https://tea.example/schema" }), {}))
  })

  it("get the form of JSON for a member of an object", () => {
    assert.match(
      refused(many, "limit=1", "opts.deep.n=3"),
      /^The tool brew has no argument opts\.deep\.n; give the whole argument as JSON: opts:=\{…\}\. Its/
    )
  })
})
