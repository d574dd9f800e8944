/** `--answer` and `--answers`: forms that are answered without a terminal. */
import { assert, describe, it } from "@effect/vitest"
import * as Result from "effect/Result"
import * as Effect from "effect/Effect"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { fill } from "../src/internal/connection/answers.ts"
import type { Field } from "../src/internal/connection/formValues.ts"
import type { Terminal } from "../src/internal/base/process.ts"
import { folder, skein, starting, teaHouse, teaHouseUrl } from "./serverKit.ts"

const answers = (values: Readonly<Record<string, string>>): ReadonlyArray<string> =>
  Object.entries(values).flatMap(([key, value]) => ["--answer", `${key}=${value}`])

const order = answers({ name: "Ada = Countess", cups: "2", tea: "Green tea", milk: "no" })
const ordered = { name: "Ada = Countess", cups: 2, tea: "green", milk: false }

for (
  const [transport, server, revisions] of [
    ["stdio", Effect.succeed(teaHouse), ["2025-11-25"]],
    ["HTTP", teaHouseUrl, ["2025-06-18", "2025-11-25", "2026-07-28"]]
  ] as const
) {
  describe(`skein --answer · ${transport}`, () => {
    it.live("answers the form of a call, converted by its schema, in a session and without one", () =>
      Effect.gen(function*() {
        const at = yield* server
        for (const revision of revisions) {
          const { code, err, out } = yield* skein("call", "--revision", revision, ...order, at, "order")
          assert.deepStrictEqual([code, out.map((line) => JSON.parse(line))], [0, [ordered]])
          assert.deepStrictEqual(err, ["Answered with the values of the command line: What would you like?"])
        }
      }))
  })
}

describe("skein --answer", () => {
  it.live("answers the forms of read and prompt", () =>
    Effect.gen(function*() {
      const at = yield* teaHouseUrl
      const read = yield* skein("read", ...order, at, "shop://order")
      assert.deepStrictEqual([read.code, JSON.parse(read.out[0]!)], [0, ordered])
      const prompt = yield* skein("prompt", ...order, at, "ask")
      assert.deepStrictEqual([prompt.code, prompt.out], [0, [`user:\n  ${JSON.stringify(ordered)}`]])
    }))

  it.live("declines a form with a key that it does not have, or without a required one, and exits with 5", () =>
    Effect.gen(function*() {
      const at = yield* teaHouseUrl
      const cases = [
        [{ name: "Ada" }, "no answer is given for cups, tea, which the form requires"],
        [{ nmae: "Ada", cups: "1", tea: "green" }, "the form has no field nmae; it has: name, cups, tea, milk"],
        [{ name: "A", cups: "many", tea: "green" }, "the answer for cups does not fit the field, which takes integer"],
        [
          { name: "A", cups: "1", tea: "1" },
          "the answer for tea does not fit the field, which takes one of green, black"
        ],
        [{ name: "A", cups: "10", tea: "green" }, "cups"]
      ] as const
      for (const [values, reason] of cases) {
        const { code, err, out } = yield* skein("call", ...answers(values), at, "order")
        assert.deepStrictEqual([code, out], [5, ["\"decline\""]])
        assert.include(err[0]!, "Declined, because ")
        assert.include(err[0]!, reason)
        assert.include(err[0]!, ": What would you like?")
      }
    }))

  it.live("reads a file with an object for every form, or an array with one for each", () =>
    Effect.gen(function*() {
      const at = yield* teaHouseUrl
      const file = join(yield* folder, "answers.json")
      const one = { name: "Ada", cups: 1, tea: "black" }
      const two = { name: "Bob", cups: 2, tea: "green" }
      writeFileSync(file, JSON.stringify(one))
      const same = yield* skein("call", "--answers", file, at, "orderTwice")
      assert.deepStrictEqual([same.code, same.out], [0, [`${JSON.stringify(one)} ${JSON.stringify(one)}`]])
      const mixed = yield* skein("call", "--answers", file, "--answer", "name=Eve", at, "order")
      assert.deepStrictEqual(JSON.parse(mixed.out[0]!), { ...one, name: "Eve" })
      writeFileSync(file, JSON.stringify([one, two]))
      const each = yield* skein("call", "--answers", file, at, "orderTwice")
      assert.deepStrictEqual([each.code, each.out], [0, [`${JSON.stringify(one)} ${JSON.stringify(two)}`]])
      writeFileSync(file, JSON.stringify([one]))
      const few = yield* skein("call", "--answers", file, at, "orderTwice")
      assert.deepStrictEqual([few.code, few.out], [5, [`${JSON.stringify(one)} "decline"`]])
      assert.include(few.err[1]!, "the file of --answers has no answers for a further form")
    }))

  it.live("fails with 2 before it connects if the file cannot be used, and quotes nothing of it", () =>
    Effect.gen(function*() {
      const file = join(yield* folder, "answers.json")
      const at = "http://127.0.0.1:1/mcp"
      const missing = yield* skein("call", "--answers", file, at, "order")
      assert.deepStrictEqual([missing.code, missing.err], [2, [`skein: ${file} cannot be read: ENOENT`]])
      for (const [text, problem] of [["{secret", "is not valid JSON"], ["\"secret\"", "must have a JSON object"]]) {
        writeFileSync(file, text!)
        const { code, err } = yield* skein("call", "--answers", file, at, "order")
        assert.strictEqual(code, 2)
        assert.include(err[0]!, problem!)
        assert.notInclude(err[0]!, "secret")
      }
      writeFileSync(file, "[]")
      const both = yield* skein("call", "--answers", file, "--answer", "a=b", at, "order")
      assert.strictEqual(both.code, 2)
      assert.include(both.err[0]!, "--answer cannot be used with")
      const form = yield* skein("call", "--answer", "secret", at, "order")
      assert.strictEqual(form.code, 2)
      assert.notInclude(form.err[0]!, "secret")
    }))

  it.live("without them a form is declined without a terminal, and the command succeeds", () =>
    Effect.gen(function*() {
      const { code, err, out } = yield* skein("call", yield* teaHouseUrl, "order")
      assert.deepStrictEqual([code, out], [0, ["\"decline\""]])
      assert.deepStrictEqual(err, ["Declined, because there is no terminal to answer on: What would you like?"])
    }))

  it.live("does not use the terminal for a form", () =>
    Effect.gen(function*() {
      const terminal: Terminal = {
        readLine: () => Effect.die("the terminal was used"),
        writeLine: () => Effect.die("the terminal was used")
      }
      const ran = yield* starting(["call", ...order, yield* teaHouseUrl, "order"], { terminal }).running
      assert.deepStrictEqual([ran.code, JSON.parse(ran.out[0]!)], [0, ordered])
    }))
})

describe("the values of a form", () => {
  const one = (field: Field, value: unknown) =>
    Result.match(
      fill(
        { requestedSchema: { type: "object", properties: { field } }, problem: () => undefined },
        new Map([["field", value]])
      ),
      { onFailure: () => "does not fit", onSuccess: ({ field }) => field }
    )
  const many: Field = { type: "array", items: { type: "string", enum: ["a", "b", "c,d"] } }
  const titled: Field = { type: "string", oneOf: [{ const: "1", title: "2" }, { const: "2", title: "One" }] }

  it("are converted by the type of the field", () => {
    const cases: ReadonlyArray<readonly [Field, unknown, unknown]> = [
      [{ type: "number" }, "1.5", 1.5],
      [{ type: "number" }, "", "does not fit"],
      [{ type: "number" }, 3, 3],
      [{ type: "boolean" }, "YES", true],
      [{ type: "boolean" }, "0", "does not fit"],
      [{ type: "string" }, "", ""],
      [{ type: "string" }, ["first", "last"], "last"],
      [{ type: "string" }, { a: 1 }, "does not fit"],
      [{ type: "string" }, null, "does not fit"],
      // A value is preferred to a label, and the number of a choice is not an answer.
      [titled, "2", "2"],
      [titled, "One", "2"],
      [{ type: "string", enum: ["x", "y"] }, "2", "does not fit"],
      [many, "a,b", ["a", "b"]],
      [many, ["a", "c,d"], ["a", "c,d"]],
      [many, ["a", "z"], "does not fit"]
    ]
    for (const [field, value, expected] of cases) {
      assert.deepStrictEqual(one(field, value), expected, JSON.stringify([field, value]))
    }
  })

  it("escape the texts of the form in the reason", () => {
    const evil = "\u001b[2J\n"
    const properties = { [evil]: { type: "boolean" as const } }
    const form = { requestedSchema: { type: "object" as const, properties, required: [evil] }, problem: () => evil }
    for (const values of [new Map(), new Map([[evil, "x"]]), new Map([["other", "x"]]), new Map([[evil, "yes"]])]) {
      const reason = Result.getOrThrow(Result.flip(fill(form, values)))
      assert.notMatch(reason, /\p{Cc}/u)
    }
  })
})
