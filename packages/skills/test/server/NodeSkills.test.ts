/** The skills of a folder on disk: what is served, what is refused, and what happens when the folder changes. */
import { describe, expect, it } from "@effect/vitest"
import type * as Wire from "@skein/skills/SkillMessage"
import * as NodeSkills from "@skein/skills/NodeSkills"
import { walk } from "../../src/server/nodeFolder.ts"
import * as Effect from "effect/Effect"
import * as TestClock from "effect/testing/TestClock"
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

  it.effect("follows symbolic links within it, and rejects those that lead out of it", () =>
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
        expect(yield* failureOf(folder)).toEqual([
          "OutsideFolder",
          `The symbolic link "greet/out" leads out of the folder of skills`
        ])
        unlinkSync(join(folder, "greet", "out"))
      }
      symlinkSync(folder, join(folder, "greet", "loop"))
      expect((yield* failureOf(folder))[1]).toMatch(/leads to a folder that contains it/)
    }))

  it.effect("rejects a missing folder, a file, and a skill that is invalid or has another name", () =>
    Effect.gen(function*() {
      const folder = yield* folderOf({ "a/SKILL.md": markdown("b") })
      expect((yield* failureOf(join(folder, "none")))[0]).toBe("FolderUnreadable")
      expect((yield* failureOf(join(folder, "a/SKILL.md")))[0]).toBe("FolderUnreadable")
      expect((yield* failureOf(folder))[1]).toMatch(/^The skill "a" is invalid: its name "b" must be that/)
      write(folder, { "a/SKILL.md": "# No frontmatter" })
      expect((yield* failureOf(folder))[0]).toBe("InvalidSkill")
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
      expect(yield* failing({ maxFiles: 1 })).toMatch(/maxFiles \(1\)/)
      expect(yield* failing({ maxBytes: 4 })).toMatch(/maxBytes \(4\)/)
      yield* connectTo(folder, { limits: { maxFiles: 2 } })
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
          const client = yield* connectTo(folder, { watchInterval: "1 second" })
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
