/** The skills of a folder on disk: what is served, what is refused, and what happens when the folder changes. */
import { describe, expect, it } from "@effect/vitest"
import type * as Wire from "@skein/skills/SkillMessage"
import * as NodeSkills from "@skein/skills/NodeSkills"
import * as SkillMarkdown from "@skein/skills/SkillMarkdown"
import { read, walk } from "../../src/server/nodeFolder.ts"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as TestClock from "effect/testing/TestClock"
import { createHash } from "node:crypto"
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, unlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import * as kit from "../../../server/test/kit.ts"
import { set } from "../../../server/test/subscriptions/kit.ts"

const markdown = (name: string, text = "Text"): string =>
  `---\nname: ${name}\ndescription: Does ${name}\n---\n\n${text}\n`

const write = (folder: string, files: Readonly<Record<string, string>>): void => {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(join(folder, path), text)
  }
}

/** A folder with these files, which is removed with the scope. */
const folderOf = (files: Readonly<Record<string, string>>) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const folder = mkdtempSync(join(tmpdir(), "skein-skills-"))
      write(folder, files)
      return folder
    }),
    (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
  )

const files = {
  "README.md": "Not a skill",
  "greet/SKILL.md": markdown("greet"),
  "acme/refunds/SKILL.md": markdown("refunds"),
  "acme/refunds/references/My limits.md": "500",
  "acme/refunds/.env": "SECRET=1",
  "acme/refunds/.git/config": "[core]",
  "acme/refunds/nested/SKILL.md": markdown("nested")
}

const connectTo = (folder: string, options?: NodeSkills.Options) =>
  Effect.flatMap(set({}, [NodeSkills.layer(folder, options)]), ({ connect }) => connect("2026-07-28"))

const skillsOf = (client: kit.Client) =>
  Effect.map(client.result("skills/list"), ({ skills }): ReadonlyArray<Wire.Skill> => skills)

const summary = (skills: ReadonlyArray<Wire.Skill>) =>
  skills.map(({ resources, uri }) => [
    uri,
    resources === "dynamic" ? resources : resources.map((file) => file.uri.slice(uri.length - "SKILL.md".length))
  ])

const failureOf = (folder: string, options?: NodeSkills.Options) =>
  Effect.map(kit.failure(kit.server(NodeSkills.layer(folder, options))), (error) => [
    (error as { readonly reason: { readonly _tag: string } }).reason._tag,
    (error as Error).message
  ])

describe("a folder", () => {
  it.effect("serves each folder with a SKILL.md and all files below it, without those that begin with a dot", () =>
    Effect.gen(function*() {
      const client = yield* connectTo(yield* folderOf(files))
      expect(summary(yield* skillsOf(client))).toEqual([
        ["skill://acme/refunds/SKILL.md", ["SKILL.md", "nested/SKILL.md", "references/My%20limits.md"]],
        ["skill://acme/refunds/nested/SKILL.md", ["SKILL.md"]],
        ["skill://greet/SKILL.md", ["SKILL.md"]]
      ])
      const read = (uri: string) => client.request("resources/read", { uri })
      expect((yield* read("skill://acme/refunds/references/My%20limits.md")).result.contents[0].text).toBe("500")
      for (const path of [".env", ".git/config", "../../README.md", "%2e%2e/%2e%2e/README.md"]) {
        expect((yield* read(`skill://acme/refunds/${path}`)).error.code).toBe(-32602)
      }
    }))

  it.effect("is a skill itself if it has a SKILL.md, below a prefix", () =>
    Effect.gen(function*() {
      const folder = join(yield* folderOf({ "one/SKILL.md": markdown("one"), "one/a.txt": "a" }), "one")
      const client = yield* connectTo(folder, { prefix: "v2", include: (path) => path !== "a.txt" })
      expect(summary(yield* skillsOf(client))).toEqual([["skill://v2/one/SKILL.md", ["SKILL.md"]]])
    }))

  it.effect("follows symbolic links within it, and leaves out those that lead out of it, in a circle or nowhere", () =>
    Effect.gen(function*() {
      const outside = yield* folderOf({ "secret.txt": "secret" })
      const folder = yield* folderOf({ ...files, "shared/text.md": "shared" })
      symlinkSync(join(folder, "shared"), join(folder, "greet", "shared"))
      symlinkSync(join(folder, "acme/refunds/.env"), join(folder, "greet", "environment"))
      expect(summary(yield* skillsOf(yield* connectTo(folder))).at(-1)).toEqual([
        "skill://greet/SKILL.md",
        ["SKILL.md", "shared/text.md"]
      ])
      for (const target of [join(outside, "secret.txt"), outside, `${folder}/..`]) {
        symlinkSync(target, join(folder, "greet", "out"))
        expect(yield* failureOf(folder, { rejectImperfect: true })).toEqual([
          "OutsideFolder",
          `The symbolic link "greet/out" leads out of the folder of skills`
        ])
        expect(summary(yield* skillsOf(yield* connectTo(folder))).at(-1)![1]).toEqual(["SKILL.md", "shared/text.md"])
        unlinkSync(join(folder, "greet", "out"))
      }
      symlinkSync(folder, join(folder, "greet", "loop"))
      symlinkSync(join(folder, "none"), join(folder, "greet", "missing"))
      const { leftOut, skills } = yield* NodeSkills.list(folder)
      expect(leftOut.map(({ error, path }) => [path, error.message])).toEqual([
        ["greet/loop", `The symbolic link "greet/loop" leads to a folder that contains it`],
        ["greet/missing", `The symbolic link "greet/missing" leads to no file`]
      ])
      expect(skills).toHaveLength(3)
    }))

  it.effect("rejects a missing folder and a file, and with rejectImperfect an imperfect skill", () =>
    Effect.gen(function*() {
      const folder = yield* folderOf({ "a/SKILL.md": markdown("b") })
      expect((yield* failureOf(join(folder, "none")))[0]).toBe("FolderUnreadable")
      expect((yield* failureOf(join(folder, "a/SKILL.md")))[0]).toBe("FolderUnreadable")
      const reject = { rejectImperfect: true }
      expect(yield* failureOf(folder, reject)).toEqual([
        "InvalidSkill",
        `The skill "a" is invalid: its folder has another name than b, which its URI has`
      ])
      write(folder, { "a/SKILL.md": "# No frontmatter" })
      expect((yield* failureOf(folder, reject))[0]).toBe("InvalidSkill")
      write(folder, { "a/SKILL.md": markdown("a") })
      yield* connectTo(folder, reject)
    }))

  it.effect("rejects more levels, files and bytes than the bounds", () =>
    Effect.gen(function*() {
      const folder = yield* folderOf({ "x/y/SKILL.md": markdown("y"), "x/y/a": "12345" })
      yield* connectTo(yield* folderOf({ [`${"d/".repeat(16)}a`]: "" }))
      expect((yield* failureOf(yield* folderOf({ [`${"d/".repeat(17)}a`]: "" })))[1]).toMatch(
        /more than 16 levels deep/
      )
      const include = () => true
      expect((yield* Effect.flip(walk(folder, { include }, 3))).message).toMatch(/more than 3 files and folders/)
      expect((yield* walk(folder, { include }, 4)).files.length).toBe(2)
      const failing = (limits: NodeSkills.Limits) => Effect.map(failureOf(folder, { limits }), ([, message]) => message)
      expect(yield* failing({ maxTotalBytes: 40 })).toMatch(/maxTotalBytes/)
      expect(yield* failing({ maxTotalBytes: 4 })).toMatch(/maxTotalBytes/)
      const leftOut = (limits: NodeSkills.Limits) =>
        Effect.map(NodeSkills.list(folder, { limits }), ({ leftOut }) => leftOut.map(({ error }) => error.message))
      expect(yield* leftOut({ maxFiles: 1 })).toEqual([expect.stringMatching(/maxFiles \(1\)/)])
      expect(yield* leftOut({ maxBytes: 4 })).toEqual([expect.stringMatching(/maxBytes \(4\)/)])
      yield* connectTo(folder, { limits: { maxFiles: 2 } })
    }))
})

const good = { "good/SKILL.md": markdown("good") }

describe("an imperfect skill", () => {
  for (
    const [what, text, name, frontmatter, change] of [
      [
        "a colon in its description",
        "---\nname: tidy\ndescription: Tidies code along two axes: style\n  and names\nlicense: MIT\n---\n\nText\n",
        "tidy",
        { description: "Tidies code along two axes: style and names", license: "MIT" },
        `the text of "description" was put in quotes`
      ],
      [
        "a bracket at the start of its description",
        "---\nname: tidy\ndescription: [beta] Tidies\nallowed-tools: [Read]\n---\nText\n",
        "tidy",
        { description: "[beta] Tidies", "allowed-tools": ["Read"] },
        `the text of "description" was put in quotes`
      ],
      [
        "a description of 1,100 characters",
        `---\nname: tidy\ndescription: ${"word ".repeat(220)}\n---\nText\n`,
        "tidy",
        { description: `${"word ".repeat(205).slice(0, 1023)}…` },
        "its description was cut to 1024 characters"
      ],
      [
        "a name that differs from its folder",
        "---\nname: acme-tidy\ndescription: Tidies\n---\nText\n",
        "acme-tidy",
        { description: "Tidies" },
        "its folder has another name than acme-tidy, which its URI has"
      ],
      [
        "no name",
        "---\ndescription: Tidies\n---\nText\n",
        "tidy",
        { description: "Tidies" },
        "it has no name: tidy is used"
      ],
      [
        "a title as its name",
        "---\nname: Tidy Code\ndescription: Tidies\n---\nText\n",
        "tidy",
        { description: "Tidies" },
        `its name "Tidy Code" became tidy`
      ],
      [
        "metadata with a number and a list",
        "---\nname: tidy\ndescription: Tidies\nmetadata:\n  version: 1.0\n  tags: [a, b]\n  when: 2026-01-02\n---\nText\n",
        "tidy",
        { description: "Tidies", metadata: { version: "1.0", tags: `["a","b"]`, when: "2026-01-02" } },
        "the values of its metadata were made texts"
      ],
      [
        "metadata that is a text",
        "---\nname: tidy\ndescription: Tidies\nmetadata: acme\n---\nText\n",
        "tidy",
        { description: "Tidies" },
        "its metadata was left out, because it is not a mapping"
      ],
      [
        "a list as its compatibility",
        "---\nname: tidy\ndescription: Tidies\ncompatibility: [git, node]\n---\nText\n",
        "tidy",
        { description: "Tidies", compatibility: "git, node" },
        "its compatibility was made a text of 1 to 500 characters"
      ]
    ] as const
  ) {
    it.effect(`with ${what} is repaired, logged once, and verified by a client`, () =>
      Effect.gen(function*() {
        const folder = yield* folderOf({ ...good, "tidy/SKILL.md": text, "tidy/a.txt": "a" })
        yield* kit.logged((lines) =>
          Effect.gen(function*() {
            const client = yield* connectTo(folder)
            const skills = yield* skillsOf(client)
            const uri = `skill://${name}/SKILL.md`
            const entry = skills.find((skill) => skill.uri === uri)!
            expect(entry.frontmatter).toEqual({ name, ...frontmatter })
            expect(summary(skills)).toContainEqual([uri, ["SKILL.md", "a.txt"]])
            expect(SkillMarkdown.formatProblem(entry.frontmatter)).toBeUndefined()
            const served: string = (yield* client.result("resources/read", { uri })).contents[0].text
            const parsed = Result.getOrThrow(SkillMarkdown.parse(served))
            expect(parsed.instructions).toBe("Text\n")
            expect(SkillMarkdown.differences(parsed.frontmatter, entry.frontmatter)).toEqual([])
            const [{ digest, size }] = entry.resources as ReadonlyArray<Wire.SkillFile> as [Wire.SkillFile]
            expect([digest, size]).toEqual([
              `sha256:${createHash("sha256").update(served).digest("hex")}`,
              Buffer.byteLength(served)
            ])
            expect(lines.filter((line) => line.includes(`the skill "tidy" was changed: ${change}`))).toHaveLength(1)
          })
        )
        expect((yield* NodeSkills.list(folder)).skills).toContainEqual(
          expect.objectContaining({ path: "tidy", name, changes: [change] })
        )
        expect((yield* failureOf(folder, { rejectImperfect: true }))[1]).toContain(change)
      }))
  }

  for (
    const [what, text, problem] of [
      ["no frontmatter", "# Tidy\n", "it does not begin with frontmatter between two lines of ---"],
      ["no description", "---\nname: tidy\n---\nText\n", "its description must have 1 to 1024 characters"],
      ["a list as its description", "---\nname: tidy\ndescription: [a]\n---\n", "its description must have 1 to"],
      ["frontmatter that is not YAML", "---\nname: tidy\ndescription: a\n- b\n---\n", "cannot be read"],
      ["a member twice", "---\nname: tidy\nname: b\ndescription: a\n---\n", "cannot be read"],
      ["bytes that are not text", "---\nname: tidy\ndescription: a\0\n---\n", "its SKILL.md is not text in UTF-8"]
    ] as const
  ) {
    it.effect(`with ${what} is left out with one warning, and the others are served`, () =>
      Effect.gen(function*() {
        const folder = yield* folderOf({ ...good, "tidy/SKILL.md": text, "tidy/inner/SKILL.md": markdown("inner") })
        yield* kit.logged((lines) =>
          Effect.gen(function*() {
            const client = yield* connectTo(folder, { watchInterval: "1 second" })
            expect(summary(yield* skillsOf(client)).map(([uri]) => uri)).toEqual([
              "skill://good/SKILL.md",
              "skill://tidy/inner/SKILL.md"
            ])
            // Another change reads the folder again, and does not log the same again.
            write(folder, { "good/SKILL.md": markdown("good", "Changed") })
            yield* until(Effect.void, () => lines.some((line) => line.includes("were read again")))
            const warnings = lines.filter((line) => line.includes(`"tidy" was left out of the skills`))
            expect(warnings).toHaveLength(1)
            expect(warnings[0]).toContain(problem)
          })
        )
        const { leftOut } = yield* NodeSkills.list(folder)
        expect(leftOut.map(({ error, path }) => [path, error.reason._tag])).toEqual([["tidy", "InvalidSkill"]])
        expect((yield* failureOf(folder, { rejectImperfect: true }))[0]).toBe("InvalidSkill")
      }))
  }

  it.effect("within another one has one path and one SKILL.md in both, and a second one of its name is left out", () =>
    Effect.gen(function*() {
      const folder = yield* folderOf({
        "outer/SKILL.md": markdown("Outer One"),
        "outer/one/SKILL.md": "---\nname: first\ndescription: Two axes: a\n---\nText\n",
        "outer/one/deep/a.txt": "a",
        "outer/two/SKILL.md": markdown("first"),
        "outer/three/SKILL.md": markdown("plain"),
        "outer/plain/a.txt": "a"
      })
      const client = yield* connectTo(folder, { prefix: "v1" })
      const skills = yield* skillsOf(client)
      expect(summary(skills)).toEqual([
        ["skill://v1/outer/SKILL.md", [
          "SKILL.md",
          "first/SKILL.md",
          "first/deep/a.txt",
          "plain/a.txt",
          "three/SKILL.md",
          "two/SKILL.md"
        ]],
        ["skill://v1/outer/first/SKILL.md", ["SKILL.md", "deep/a.txt"]]
      ])
      const fileOf = (at: number) =>
        (skills[at]!.resources as ReadonlyArray<Wire.SkillFile>).find(({ uri }) => uri.endsWith("first/SKILL.md"))
      expect(fileOf(0)).toEqual(fileOf(1))
      const { leftOut } = yield* NodeSkills.list(folder)
      expect(leftOut.map(({ error }) => error.message)).toEqual([
        `The skill "outer/three" is invalid: its name "plain" is that of "outer/plain": rename one of them`,
        `The skill "outer/two" is invalid: its name "first" is that of "outer/one": rename one of them`
      ])
    }))

  it.effect("with a file that cannot be read is left out", () =>
    Effect.gen(function*() {
      const folder = yield* folderOf({ ...good, "tidy/SKILL.md": markdown("tidy"), "tidy/secret": "a" })
      const state = yield* walk(folder, { include: () => true })
      rmSync(join(folder, "tidy/secret"))
      const { leftOut, skills } = yield* read(folder, state, { maxTotalBytes: 1000 })
      expect(skills.map(({ path }) => path)).toEqual(["good"])
      expect(leftOut.map(({ error, path }) => [path, error.message])).toEqual([
        ["tidy", `Cannot read "tidy/secret": ENOENT`]
      ])
    }))
})

/** Advances the clock by `watchInterval`, and waits until a condition holds: files are read in real time. */
const until = <A>(effect: Effect.Effect<A>, holds: (value: A) => boolean): Effect.Effect<A> =>
  Effect.gen(function*() {
    for (;;) {
      yield* TestClock.adjust("1 second")
      yield* Effect.promise(() => new Promise((resolve) => setTimeout(resolve, 5)))
      const value = yield* effect
      if (holds(value)) return value
    }
  })

describe("a watched folder", () => {
  it.effect("replaces its skills after a change, and notifies clients", () =>
    Effect.gen(function*() {
      const folder = yield* folderOf(files)
      const { connect } = yield* set({}, [NodeSkills.layer(folder, { watchInterval: "1 second" })])
      const client = yield* connect("2025-11-25")
      const uri = "skill://greet/SKILL.md"
      yield* client.result("resources/subscribe", { uri })
      const digest = Effect.map(client.result("skills/get", { uri }), ({ skill }) => skill.resources[0].digest)
      const before = yield* digest
      write(folder, { "greet/SKILL.md": markdown("greet", "Changed"), "new/SKILL.md": markdown("new") })
      rmSync(join(folder, "acme"), { recursive: true })
      const now = yield* until(skillsOf(client), (skills) => skills.length === 2)
      expect(summary(now)).toEqual([[uri, ["SKILL.md"]], ["skill://new/SKILL.md", ["SKILL.md"]]])
      expect(yield* digest).not.toBe(before)
      yield* until(Effect.void, () => client.notices("notifications/resources/list_changed").length > 0)
      expect(client.notices("notifications/resources/updated").map(({ params }) => params.uri)).toContain(uri)
      const read = (uri: string) => client.request("resources/read", { uri })
      expect((yield* read(uri)).result.contents[0].text).toMatch(/Changed/)
      expect((yield* read("skill://acme/refunds/SKILL.md")).error.code).toBe(-32002)
    }))

  it.effect("that becomes invalid keeps its skills, logs the problem once, and is read again when it is valid", () =>
    Effect.gen(function*() {
      const folder = yield* folderOf({ "greet/SKILL.md": markdown("greet") })
      yield* kit.logged((lines) =>
        Effect.gen(function*() {
          const client = yield* connectTo(folder, { watchInterval: "1 second", rejectImperfect: true })
          const count = (text: string) => lines.filter((line) => line.includes(text)).length
          write(folder, { "greet/SKILL.md": "broken", "other/SKILL.md": markdown("other") })
          yield* until(Effect.void, () => count("were not read again") > 0)
          for (let round = 0; round < 5; round++) yield* until(Effect.void, () => true)
          expect(count("were not read again")).toBe(1)
          expect(summary(yield* skillsOf(client))).toEqual([["skill://greet/SKILL.md", ["SKILL.md"]]])
          write(folder, { "greet/SKILL.md": markdown("greet", "Repaired again") })
          yield* until(Effect.void, () => count("were read again") > 0)
          expect((yield* skillsOf(client)).length).toBe(2)
        })
      )
    }))
})
