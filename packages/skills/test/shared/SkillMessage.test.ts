import { describe, expect, it } from "@effect/vitest"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Codec from "@skein/protocol/Codec"
import * as Revision from "@skein/protocol/Revision"
import * as SkillMessage from "@skein/skills/SkillMessage"
import * as SkillMarkdown from "@skein/skills/SkillMarkdown"
import { wellFormed } from "@skein/protocol/Text"

// A surrogate without a partner is written as U+FFFD.
const WellFormed = Schema.String.check(Schema.makeFilter((text) => text === wellFormed(text)))

const parse = (text: string, max?: number) => SkillMarkdown.parse(text, max)
const problem = (text: string, max?: number) => Result.getOrThrow(Result.flip(parse(text, max)))
const head = (yaml: string) => `---\nname: a\ndescription: b\n${yaml}\n---\nText`

describe("SKILL.md", () => {
  it("is read with its frontmatter and its instructions", () => {
    for (
      const text of [
        "---\nname: a\ndescription: b\n---\n\n\n# Title\n",
        "\ufeff--- \r\nname: a\r\ndescription: b\r\n---\t\r\n# Title\n"
      ]
    ) {
      expect(Result.getOrThrow(parse(text))).toEqual({
        frontmatter: { name: "a", description: "b" },
        instructions: "# Title\n"
      })
    }
    expect(Result.getOrThrow(parse("---\nname: a\ndescription: b\n---")).instructions).toBe("")
  })

  it("keeps every member with the types of JSON", () => {
    const { frontmatter } = Result.getOrThrow(
      parse(head("date: 2026-01-02\nyes: no\nlist: [1, 0.5, null]\n__proto__: {x: 1}"))
    )
    expect(JSON.parse(JSON.stringify(frontmatter))).toEqual(JSON.parse(
      `{"name":"a","description":"b","date":"2026-01-02","yes":"no","list":[1,0.5,null],"__proto__":{"x":1}}`
    ))
  })

  it("counts the characters of a description, not their UTF-16 code units", () => {
    const of = (count: number) => `---\nname: a\ndescription: ${"🧶".repeat(count)}\n---\n`
    const problemOf = (count: number) => SkillMarkdown.formatProblem(Result.getOrThrow(parse(of(count))).frontmatter)
    expect(problemOf(1024)).toBeUndefined()
    expect(problemOf(1025)).toContain("its description must have 1 to 1024 characters")
  })

  for (
    const [what, text, message] of [
      ["no frontmatter", "# Title", "does not begin with frontmatter"],
      ["frontmatter without an end", "---\nname: a\n", "does not begin with frontmatter"],
      [
        "a line that only begins like its end",
        "---\nname: a\ndescription: b\n--- x\n",
        "does not begin with frontmatter"
      ],
      ["YAML that is malformed", head("x: [1"), "cannot be read"],
      ["a member twice", head("name: b"), "cannot be read"],
      ["a list", "---\n- a\n---\n", "is not a mapping"],
      ["a number without a form in JSON", head("x: .inf"), "has no form in JSON"],
      ["a name that is not a text", "---\nname: 1\ndescription: b\n---\n", "its name must have"],
      ["no description", "---\nname: a\n---\n", "its description must have"],
      ["too many levels", head(`x: ${"[".repeat(60)}${"]".repeat(60)}`), "cannot be read"],
      ["too many values", head(`x: [${"1,".repeat(10_001)}]`), "has more than 10000 values"],
      [
        "aliases that stand for many values",
        head(`a: &a [${"1,".repeat(99)}]\nb: &b [${"*a,".repeat(30)}]\nc: &c [${"*b,".repeat(30)}]`),
        "has more than 10000 values"
      ]
    ] as const
  ) {
    it(`rejects ${what}`, () => {
      expect(problem(text)).toContain(message)
    })
  }

  it("rejects frontmatter beyond its bound, and accepts it at the bound", () => {
    const text = head("x: y")
    const length = "name: a\ndescription: b\nx: y\n".length
    expect(problem(text, length - 1)).toBe(
      `its frontmatter has ${length} characters, more than ${length - 1}`
    )
    expect(Result.isSuccess(parse(text, length))).toBe(true)
  })

  it("reads a hostile text in linear time", () => {
    const started = process.cpuUsage().user
    for (const part of ["\n---", "\n--- ", "---", "\r\n"]) parse(`---\n${part.repeat(500_000)}`)
    expect(process.cpuUsage().user - started).toBeLessThan(10_000_000)
  })

  it("names the members that differ", () => {
    expect(SkillMarkdown.differences({ a: 1, b: { x: 1, y: 2 }, c: null }, { b: { y: 2, x: 1 }, a: 2, d: null }))
      .toEqual([
        "a",
        "c",
        "d"
      ])
  })

  it.prop(
    "is read as it was written",
    [
      WellFormed.check(Schema.isMinLength(1), Schema.isMaxLength(50)),
      Schema.Record(WellFormed, Schema.Union([WellFormed, Schema.Finite, Schema.Boolean, Schema.Null])),
      Schema.String
    ],
    ([description, metadata, body]) => {
      const frontmatter = { name: "a-1", description: `${description}.`, metadata }
      const read = Result.getOrThrow(parse(SkillMarkdown.write(frontmatter, `x${body}`)))
      expect(SkillMarkdown.differences(read.frontmatter, frontmatter)).toEqual([])
      expect(read.instructions).toBe(`x${body}${`x${body}`.endsWith("\n") ? "" : "\n"}`)
    }
  )
})

describe("the URI of a skill", () => {
  it("has its path and its name", () => {
    const uri = SkillMessage.uriOf("acme/My team/refunds")!
    expect(uri).toBe("skill://acme/My%20team/refunds/SKILL.md")
    expect([SkillMessage.rootOf(uri), SkillMessage.pathOf(uri), SkillMessage.nameOf(uri)]).toEqual([
      "skill://acme/My%20team/refunds",
      "acme/My%20team/refunds",
      "refunds"
    ])
    expect(SkillMessage.nameOf("github://o/r/skills/pdf/SKILL.md")).toBe("pdf")
    for (const other of ["skill://a/skill.md", "skill://SKILL.md", "skill:///SKILL.md", "a/SKILL.md", ""]) {
      expect(SkillMessage.nameOf(other)).toBeUndefined()
    }
  })

  it.prop("does not leave its folder", [Schema.String], ([path]) => {
    const encoded = SkillMessage.encodePath(path)
    if (encoded === undefined) return
    expect(encoded).toMatch(/^(?!\/)[\w\-.~!*'()%/]+$/)
    expect(new URL(`http://x/root/${encoded}`).pathname.startsWith("/root/")).toBe(true)
    expect(decodeURIComponent(encoded)).toBe(path)
  })
})

describe("the messages of the extension", () => {
  const digest = `sha256:${"0".repeat(64)}`
  const entry = { uri: "skill://a/SKILL.md", frontmatter: { name: "a", description: "b", x: 1 }, resources: "dynamic" }

  for (const revision of Revision.all) {
    it(`${revision} · caching hints are written since 2026-07-28, and entries without files are left out`, () => {
      const written = Result.getOrThrow(Codec.encodeResult(SkillMessage.ListSkills, revision, { skills: [] }))
      expect(written).toEqual(
        revision === "2026-07-28"
          ? { skills: [], ttlMs: 0, cacheScope: "private", resultType: "complete" }
          : { skills: [] }
      )
      const ignored: Array<string> = []
      const bad = [
        { ...entry, resources: undefined },
        { ...entry, resources: "static" },
        { ...entry, resources: [{ uri: "skill://a/x", digest }] },
        { ...entry, frontmatter: { name: "a" } }
      ]
      const raw = { skills: [entry, ...bad, { ...entry, resources: [{ uri: "skill://a/SKILL.md", digest, size: 3 }] }] }
      const read = Result.getOrThrow(Codec.decodeResult(SkillMessage.ListSkills, revision, raw, ignored))
      expect(read.skills.map(({ resources }) => resources)).toEqual(["dynamic", raw.skills.at(-1)!.resources])
      expect(ignored.length).toBe(4)
      expect(Result.isFailure(Codec.decodeResult(SkillMessage.GetSkill, revision, { skill: bad[0] }, []))).toBe(true)
    })
  }

  it("have digests of 64 lowercase hexadecimal digits", () => {
    expect(SkillMessage.digestText(new Uint8Array(32).fill(0xab))).toBe(`sha256:${"ab".repeat(32)}`)
    for (const text of [digest.toUpperCase(), digest.slice(0, -1), `${digest}0`, "0".repeat(64)]) {
      expect(SkillMessage.isDigest(text)).toBe(false)
    }
    expect(SkillMessage.isDigest(digest)).toBe(true)
  })
})
