/** Tests of the check of sources: each breaks one rule on purpose. */
import { describe, expect, it } from "@effect/vitest"
import { sourceProblems } from "./sources.ts"

const path = "packages/server/src/internal/a.ts"
/** The messages about a module, without its path. */
const about = (text: string, of = path): ReadonlyArray<string> =>
  sourceProblems(of, text).map((problem) => problem.slice(of.length + 1))

describe("the check of comments", () => {
  it("rejects a sentence that begins with a relative clause", () => {
    for (
      const text of [
        "/** What waits. */",
        "/**\n * Who asks.\n */",
        "/** A call. What waits is ended. */",
        "// Whoever asks."
      ]
    ) {
      expect(about(`${text}\nexport const a = 1\n`)[0]).toContain("a sentence begins with \"Wh")
    }
    for (
      const text of [
        "/** Returns what a call needs. */",
        "/** What is a round? See `b`. */",
        "// The call\n// What is next"
      ]
    ) {
      expect(about(`${text}\nexport const a = 1\n`)).toEqual([])
    }
  })

  it("rejects words that are not plain English, and reports the line", () => {
    const bad = [
      "Nobody asks",
      "it is read anew",
      "it waits for ever",
      "a key is no secret",
      "it retries in vain",
      "accepts no more calls"
    ]
    for (const text of bad) {
      expect(about(`export const a = 1\n\n// ${text}.\nexport const b = 1\n`)[0]).toMatch(
        /^3: "[\w ]+" in a comment: write /
      )
    }
    const good = [
      "there is no token",
      "is no longer open",
      "at most, and no more than that",
      "`nobody` and \"whoever\""
    ]
    for (const text of good) expect(about(`// ${text}.\nexport const b = 1\n`)).toEqual([])
  })

  it("reads the lines of one comment together, and leaves texts of the program alone", () => {
    expect(about("// The call is\n// no secret.\nexport const b = 1\n")).toEqual([
      "1: \"is no\" in a comment: write is not a, or has no"
    ])
    expect(about("export const b = \"nobody // nobody\"\n")).toEqual([])
  })
})

describe("the check of defaults", () => {
  it("rejects a duration with an ad-hoc default, except in Options", () => {
    const text =
      "export const a = Duration.toMillis(given.a ?? 1)\nexport const b = Duration.fromInputUnsafe(given.a ?? c)\n"
    const message = "an option has its default from Options.resolve of @skein/runtime"
    expect(about(text)).toEqual([`1: ${message}`, `2: ${message}`])
    expect(about(text, "packages/runtime/src/Options.ts")).toEqual([])
    expect(about("export const a = Duration.toMillis(settings.a)\n")).toEqual([])
  })
})

describe("the check of errors", () => {
  it("rejects an error with a message that is not printable", () => {
    const error = (fields: string): string => `export class A extends Data.TaggedError("A")${fields} {}\n`
    const message = "an error with a message extends PrintableError.tagged, which escapes it"
    expect(about(error("<{ readonly message: string }>"))).toEqual([`1: ${message}`])
    const details = (member: string): string => `interface Details { readonly ${member}: string }\n`
    expect(about(details("message") + error("<Details>"))).toEqual([`2: ${message}`])
    expect(about(details("path") + error("<Details>"))).toEqual([])
    expect(about(error("<{ readonly message?: string }>"))).toEqual([])
    expect(about(error("<{ readonly reason: Reason }>"))).toEqual([])
    expect(about(error(""))).toEqual([])
    expect(about(error("<{ readonly message: string }>").replace("Data.TaggedError", "PrintableError.tagged"))).toEqual(
      []
    )
  })
})

describe("the check of cuts", () => {
  const rule = "1: a text is cut by Text.cut or Text.clip, which never cut a character in half"

  it("rejects a cut of a text at a bound", () => {
    for (
      const text of [
        "text.slice(0, 200)",
        "`${name.slice(0, maxChars)}…`",
        "description?.slice(0, maxChars / 2)",
        "JSON.stringify(value).slice(0, 4 * quoted)",
        "this.#text.slice(0, this.#maxChars)",
        "address.slice(0, limits.maxChars)",
        "text.substring(1, 2)"
      ]
    ) {
      expect(about(`export const a = ${text}\n`)).toEqual([rule])
      expect(about(`export const a = ${text}\n`, "scripts/a.ts")).toEqual([])
    }
  })

  it("allows a cut at a position that was found, and cuts of lists and digests", () => {
    for (
      const text of [
        "text.slice(0, colon)",
        "text.slice(0, -1)",
        "text.slice(at + 1)",
        "names.slice(0, 8)",
        "[1, 2, 3].slice(0, 2)",
        "found.filter(isText).slice(0, maxNames)",
        "(yield* task.list).slice(0, 8).map(nameOf)",
        "traceId.slice(0, 8)",
        "new Date(0).toISOString().slice(0, 10)"
      ]
    ) expect(about(`export const a = function*() { return ${text} }\n`)).toEqual([])
  })
})

describe("the check of programs of users", () => {
  it("rejects a member that Node 22 lacks, and allows it in programs of the repository", () => {
    const text = "if (import.meta.main) console.log(\"import.meta.main\")\n"
    for (const file of ["docs/programs/a.ts", "examples/a/b.ts", "packages/create-skein/templates/a/src/b.ts"]) {
      expect(about(text, file)).toEqual([
        "1: Node 22 has no import.meta.main: process.argv[1] === import.meta.filename"
      ])
    }
    expect(about(text, "scripts/a.ts")).toEqual([])
  })
})
