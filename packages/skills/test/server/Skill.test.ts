/** Skills that are given as values: their entries, files and folders, in every revision. */
import { describe, expect, it } from "@effect/vitest"
import * as Json from "@skein/protocol/Json"
import * as Revision from "@skein/protocol/Revision"
import * as Wire from "@skein/skills/SkillMessage"
import * as SkillMarkdown from "@skein/skills/SkillMarkdown"
import * as Catalog from "@skein/server/Catalog"
import * as Resource from "@skein/server/Resource"
import * as Skill from "@skein/skills/Skill"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { createHash } from "node:crypto"
import * as kit from "../../../server/test/kit.ts"
import { set } from "../../../server/test/subscriptions/kit.ts"

const sha256 = (content: string | Uint8Array): string => `sha256:${createHash("sha256").update(content).digest("hex")}`

const refunds = Skill.make({
  name: "refunds",
  description: "Refunds orders",
  license: "MIT",
  frontmatter: { metadata: { version: "2" } },
  instructions: "Find the order first.",
  files: { "references/limits.md": "Ask above 500 EUR.\n", "assets/dot.png": Uint8Array.of(0x89, 0, 255) },
  prefix: "acme/billing"
})
const uri = "skill://acme/billing/refunds/SKILL.md"
const root = "skill://acme/billing/refunds"
const greet = Skill.make({ name: "greet", description: "Greets people", instructions: "Say hello." })

const reasonOf = (skills: ReturnType<typeof Skill.layer>) =>
  Effect.map(kit.failure(kit.server(skills)), ({ message, reason }) => [reason._tag, message])

describe("a skill", () => {
  for (const revision of Revision.all) {
    it.effect(`${revision} · is listed with its frontmatter and the digest and size of each file`, () =>
      Effect.gen(function*() {
        const { connect } = yield* set({}, [Skill.layer([refunds, greet])])
        const client = yield* connect(revision)
        const { skills } = yield* client.result("skills/list")
        expect(skills.map((skill: Wire.Skill) => skill.uri)).toEqual([uri, "skill://greet/SKILL.md"])
        expect(skills[0]).toEqual({
          uri,
          frontmatter: {
            name: "refunds",
            description: "Refunds orders",
            license: "MIT",
            metadata: { version: "2" }
          },
          resources: [
            { uri, digest: sha256(refunds.markdown), size: Buffer.byteLength(refunds.markdown) },
            { uri: `${root}/assets/dot.png`, digest: sha256(Uint8Array.of(0x89, 0, 255)), size: 3 },
            { uri: `${root}/references/limits.md`, digest: sha256("Ask above 500 EUR.\n"), size: 19 }
          ]
        })
        const got = yield* client.result("skills/get", { uri })
        expect(got.skill).toEqual(skills[0])
        expect([got.ttlMs, got.cacheScope]).toEqual(revision === "2026-07-28" ? [0, "private"] : [undefined, undefined])
        expect(yield* client.error("skills/get", { uri: `${root}/references/limits.md` })).toMatchObject({
          code: -32602
        })
      }))
  }

  it.effect("serves its files as resources: text where it is UTF-8, and bytes otherwise", () =>
    Effect.gen(function*() {
      const { connect } = yield* set({}, [Skill.layer(refunds)])
      const client = yield* connect("2025-11-25")
      const read = (uri: string) => Effect.map(client.result("resources/read", { uri }), ({ contents }) => contents)
      expect(yield* read(uri)).toEqual([{ uri, mimeType: "text/markdown", text: refunds.markdown }])
      const dot = `${root}/assets/dot.png`
      expect(yield* read(dot)).toEqual([{ uri: dot, mimeType: "image/png", blob: "iQD/" }])
      const { resources } = yield* client.result("resources/list")
      expect(resources).toContainEqual({
        uri,
        name: "refunds",
        description: "Refunds orders",
        mimeType: "text/markdown",
        size: Buffer.byteLength(refunds.markdown)
      })
      for (const other of [`${root}/../refunds/SKILL.md`, `${root}/%2e%2e/SKILL.md`, `${root}/references`]) {
        expect((yield* client.error("resources/read", { uri: other })).message).toBe("Resource not found")
      }
    }))

  it.effect("serves a byte order mark as a part of its text", () =>
    Effect.gen(function*() {
      const files = { "a.txt": Uint8Array.of(0xef, 0xbb, 0xbf, 65) }
      const { connect } = yield* set({}, [
        Skill.layer(Skill.make({ name: "a", description: "b", instructions: "", files }))
      ])
      const client = yield* connect("2025-11-25")
      const { contents } = yield* client.result("resources/read", { uri: "skill://a/a.txt" })
      expect(contents[0].text).toBe("\ufeffA")
    }))

  it.effect("lists its folders, and those above it", () =>
    Effect.gen(function*() {
      const { connect } = yield* set({ pageSize: 2 }, [Skill.layer([refunds, greet])])
      const client = yield* connect("2026-07-28")
      const list = (uri: string, cursor?: string) => client.result("resources/directory/read", { uri, cursor })
      const directory = (uri: string, name: string) => ({ uri, name, mimeType: "inode/directory" })
      expect((yield* list("skill://acme")).resources).toEqual([directory("skill://acme/billing", "billing")])
      const first = yield* list(root)
      expect(first.resources.map(({ uri }: { readonly uri: string }) => uri)).toEqual([uri, `${root}/assets`])
      const second = yield* list(root, first.nextCursor)
      expect(second.resources).toEqual([directory(`${root}/references`, "references")])
      expect(second.nextCursor).toBeUndefined()
      const error = (uri: string) => client.error("resources/directory/read", { uri })
      expect(yield* error(uri)).toMatchObject({ code: -32602, message: `"${uri}" is not a directory` })
      expect(yield* error(`${root}/`)).toMatchObject({ code: -32602 })
      expect(yield* client.error("resources/directory/read", { uri: root, cursor: "x" })).toMatchObject({
        code: -32602
      })
    }))

  it.effect("declares the extension and resources, once for all layers", () =>
    Effect.gen(function*() {
      const { connect } = yield* set({}, [Skill.layer([]), Skill.layer(greet), Skill.layer([])])
      const { capabilities } = yield* (yield* connect("2026-07-28")).result("server/discover")
      expect(capabilities).toMatchObject({
        resources: { listChanged: true },
        extensions: { [Wire.extension]: { directoryRead: true } }
      })
    }))

  it.effect("declares resources while there are none", () =>
    Effect.gen(function*() {
      const { connect } = yield* set({}, [Skill.layer([])])
      const client = yield* connect("2025-11-25")
      expect((yield* client.result("skills/list")).skills).toEqual([])
      expect((yield* client.result("resources/list")).resources).toEqual([])
    }))

  it.effect("is listed in pages of `pageSize`, each entry whole", () =>
    Effect.gen(function*() {
      const many = Array.from({ length: 5 }, (_, at) =>
        Skill.make({ name: `s${at}`, description: "d", instructions: "", files: { a: "1", b: "2" } }))
      const { connect } = yield* set({ pageSize: 2 }, [Skill.layer(many)])
      const { entries, pages } = yield* (yield* connect("2026-07-28")).all("skills/list", "skills")
      expect(pages).toBe(3)
      expect(entries.map(({ frontmatter, resources }) => [frontmatter.name, resources.length])).toEqual(
        many.map(({ name }) => [name, 3])
      )
    }))

  it.effect("is hidden, refused and disabled with its resources, and its entry is private then", () =>
    Effect.gen(function*() {
      const other = Skill.make({ name: "other", description: "d", instructions: "" })
      const { connect, run } = yield* set({}, [
        Catalog.visibleTo(({ revision }) => revision === "2026-07-28", Skill.layer(refunds)),
        Skill.layer([greet, other])
      ])
      const old = yield* connect("2025-11-25")
      const client = yield* connect("2026-07-28")
      const names = (which: typeof client) =>
        Effect.map(
          which.result("skills/list"),
          ({ skills }) => skills.map(({ frontmatter }: Wire.Skill) => frontmatter.name)
        )
      expect(yield* names(old)).toEqual(["greet", "other"])
      expect(yield* names(client)).toEqual(["refunds", "greet", "other"])
      expect((yield* old.error("skills/get", { uri })).code).toBe(-32602)
      expect((yield* old.error("resources/directory/read", { uri: root })).message).toMatch(/^No directory/)
      yield* run(Catalog.setEnabled("resource", "skill://other/SKILL.md", false))
      expect(yield* names(client)).toEqual(["refunds", "greet"])
    }))

  it.effect("is removed when its layer ends, and its URI is free again", () =>
    Effect.gen(function*() {
      const { connect, run } = yield* set({}, [Skill.layer([])])
      const client = yield* connect("2026-07-28")
      const count = Effect.map(client.result("skills/list"), ({ skills }) => skills.length)
      for (let round = 0; round < 2; round++) {
        expect(yield* run(Effect.scoped(Effect.andThen(Layer.build(Skill.layer(greet)), count)))).toBe(1)
        expect(yield* count).toBe(0)
        expect((yield* client.error("resources/read", { uri: "skill://greet/SKILL.md" })).code).toBe(-32602)
      }
    }))

  it.effect("without stable content has no digests, and is made for each read", () =>
    Effect.gen(function*() {
      let reads = 0
      const { connect } = yield* set({}, [Skill.dynamic({
        name: "daily",
        description: "Reports",
        instructions: Effect.sync(() => `Read ${++reads} times.`),
        files: { "data/orders.csv": Effect.succeed("a,b\n") }
      })])
      const client = yield* connect("2026-07-28")
      const { skill } = yield* client.result("skills/get", { uri: "skill://daily/SKILL.md" })
      expect(skill).toEqual({
        uri: "skill://daily/SKILL.md",
        frontmatter: { name: "daily", description: "Reports" },
        resources: "dynamic"
      })
      const text = Effect.map(
        client.result("resources/read", { uri: skill.uri }),
        ({ contents }) => Result.getOrThrow(SkillMarkdown.parse(contents[0].text))
      )
      expect(yield* text).toEqual({ frontmatter: skill.frontmatter, instructions: "Read 1 times.\n" })
      expect((yield* text).instructions).toBe("Read 2 times.\n")
      const { resources } = yield* client.result("resources/directory/read", { uri: "skill://daily/data" })
      expect(resources).toEqual([
        {
          uri: "skill://daily/data/orders.csv",
          name: "orders.csv",
          description: "A file of the skill daily",
          mimeType: "text/csv"
        }
      ])
    }))
})

describe("an invalid skill fails the layer", () => {
  const skill = (options: Partial<Skill.Options>) =>
    Skill.layer(Skill.make({ name: "a", description: "b", instructions: "", ...options }))

  for (const name of ["", "A", "a--b", "-a", "a-", "a_b", "a".repeat(65), "../a", "ä"]) {
    it.effect(`rejects the name ${JSON.stringify(name)}`, () =>
      Effect.gen(function*() {
        expect((yield* reasonOf(skill({ name })))[0]).toBe("InvalidSkill")
      }))
  }

  for (const path of ["../x", "/x", "a//b", "a/./b", "a/", "", "a\u0000", "\ud800"]) {
    it.effect(`rejects the path ${JSON.stringify(path)} of a file and of a prefix`, () =>
      Effect.gen(function*() {
        expect((yield* reasonOf(skill({ files: { [path]: "" } })))[0]).toBe("InvalidPath")
        expect((yield* reasonOf(skill({ prefix: path })))[0]).toBe("InvalidPath")
      }))
  }

  it.effect("rejects more files, bytes and frontmatter than the bounds, and accepts as much as they are", () =>
    Effect.gen(function*() {
      const one = Skill.make({ name: "a", description: "b", instructions: "", files: { x: "12", y: "3" } })
      const bytes = Buffer.byteLength(one.markdown) + 3
      const reason = (limits: Skill.Limits) => reasonOf(Skill.layer(one, { limits }))
      expect(yield* reason({ maxFiles: 2 })).toEqual([
        "LimitExceeded",
        `The skill "a" has 3 files, more than maxFiles (2)`
      ])
      expect(yield* reason({ maxBytes: bytes - 1 })).toEqual([
        "LimitExceeded",
        `The skill "a" has ${bytes} bytes, more than maxBytes (${bytes - 1})`
      ])
      const long = Skill.make({ name: "a", description: "b", instructions: "", frontmatter: { x: "y".repeat(65_536) } })
      expect((yield* reasonOf(Skill.layer(long)))[0]).toBe("InvalidSkill")
      yield* set({}, [Skill.layer(one, { limits: { maxFiles: 3, maxBytes: bytes } })])
    }))

  it.effect("rejects a description that is empty or too long", () =>
    Effect.gen(function*() {
      for (const description of ["", " ", "x".repeat(1025)]) {
        expect((yield* reasonOf(skill({ description })))[1]).toMatch(/its description must have 1 to 1024 characters/)
      }
    }))

  it.effect("rejects metadata that does not map texts to texts, and an empty compatibility, of dynamic skills too", () =>
    Effect.gen(function*() {
      for (
        const [members, message] of [
          [
            { frontmatter: { metadata: { author: "Ada", version: 1 } } },
            /texts: put the value of "version" in quotes$/
          ],
          [{ frontmatter: { metadata: ["x"] } }, /its metadata must be a mapping of texts$/],
          [{ frontmatter: { metadata: null } }, /its metadata must be a mapping of texts$/],
          [{ compatibility: "" }, /its compatibility must have 1 to 500 characters$/]
        ] as const
      ) {
        const dynamic = Skill.dynamic({ name: "a", description: "b", instructions: Effect.succeed(""), ...members })
        for (const layer of [skill(members), dynamic]) {
          expect(yield* reasonOf(layer)).toEqual(["InvalidSkill", expect.stringMatching(message)])
        }
      }
    }))

  it.effect("rejects a skill inside of one of another layer, and accepts both in one", () =>
    Effect.gen(function*() {
      const inner = Skill.make({ name: "inner", description: "d", instructions: "", prefix: "outer" })
      const outer = Skill.make({
        name: "outer",
        description: "d",
        instructions: "",
        files: { "inner/SKILL.md": inner.markdown }
      })
      const failed = yield* kit.failure(kit.server(Skill.layer(outer), Skill.layer(inner)))
      expect(failed).toMatchObject({ _tag: "SkillError", reason: { _tag: "SeparatelyNested" } })
      const { connect } = yield* set({}, [Skill.layer([outer, inner])])
      const { skills } = yield* (yield* connect("2026-07-28")).result("skills/list")
      expect(skills.map(({ resources, uri }: Wire.Skill) => [uri, resources.length])).toEqual([
        ["skill://outer/SKILL.md", 2],
        ["skill://outer/inner/SKILL.md", 1]
      ])
    }))

  it.effect("rejects a URI that exists already", () =>
    Effect.gen(function*() {
      for (
        const twin of [
          kit.server(Skill.layer(greet), Skill.layer(greet)),
          kit.server(Skill.layer([greet, greet])),
          kit.server(Resource.layer(Resource.make("skill://greet/SKILL.md"), Effect.succeed("")), Skill.layer(greet))
        ]
      ) expect(yield* kit.failure(twin)).toMatchObject({ reason: { _tag: "DuplicateName" } })
    }))

  it.effect("rejects a SKILL.md that is not valid", () =>
    Effect.sync(() => {
      const failed = Skill.fromMarkdown("# No frontmatter")
      expect(Result.isFailure(failed) && failed.failure.reason._tag).toBe("InvalidSkill")
      const read = Result.getOrThrow(Skill.fromMarkdown("---\nname: a\ndescription: b\n---\nText"))
      expect(read).toMatchObject({ name: "a", markdown: "---\nname: a\ndescription: b\n---\nText" })
    }))
})

// Without a backslash: once Node 24.9 has parsed an object with the key "\\", `JSON.parse` reads the key "\"" at its place as "\\".
const Key = Schema.String.check(Schema.isPattern(/^[^\\]*$/))

it.effect.prop(
  "any description and metadata are served as they are parsed from the served SKILL.md",
  [Schema.String.check(Schema.isMinLength(1), Schema.isMaxLength(40)), Schema.Record(Key, Schema.String)],
  ([description, metadata]) =>
    Effect.gen(function*() {
      const skill = Skill.make({
        name: "a",
        description: `${description}.`,
        frontmatter: { metadata },
        instructions: ""
      })
      const { connect } = yield* set({}, [Skill.layer(skill)])
      const client = yield* connect("2025-11-25")
      const { skills: [entry] } = yield* client.result("skills/list")
      const { contents } = yield* client.result("resources/read", { uri: entry.uri })
      const { frontmatter } = Result.getOrThrow(SkillMarkdown.parse(contents[0].text))
      expect(frontmatter).toEqual(entry.frontmatter)
      // A surrogate without a partner is sent as U+FFFD.
      expect(frontmatter).toEqual(JSON.parse(Json.stringify({ name: "a", description: `${description}.`, metadata })!))
    })
)
