/** Loading skills: what is read when, what is verified, and what is refused. */
import { assert, describe, it } from "@effect/vitest"
import * as SkillMessage from "@skein/skills/SkillMessage"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { listedUri, resolve } from "../../src/client/entry.ts"
import * as RemoteSkill from "@skein/skills/RemoteSkill"
import type { RemoteSkillError } from "@skein/skills/RemoteSkillError"
import { entry, fileOf, files, forms, logo, markdown, root, serverOf, type Setting, sha256, uri } from "./kit.ts"

const reasonOf = <A, E extends { readonly reason: { readonly _tag: string } }>(effect: Effect.Effect<A, E>) =>
  Effect.map(Effect.flip(effect), ({ reason }) => reason._tag)

/** The reason for which the skill of a server is refused, and the files that were read. */
const refusal = (setting: Setting, options?: RemoteSkill.Options, skill: SkillMessage.Skill = entry) =>
  Effect.gen(function*() {
    const { client, reads } = serverOf(setting)
    return [yield* reasonOf(RemoteSkill.load(yield* client, skill, options)), reads.length] as const
  })

const withFiles = (resources: SkillMessage.Skill["resources"]): SkillMessage.Skill => ({ ...entry, resources })

describe("a skill", () => {
  for (const revision of ["2024-11-05", "2025-11-25", "2026-07-28"] as const) {
    it.effect(`${revision} · is read when it is loaded, and each file when it is asked for`, () =>
      Effect.gen(function*() {
        const { client: connected, reads } = serverOf({ revision })
        const client = yield* connected
        const [listed] = yield* RemoteSkill.list(client)
        assert.deepStrictEqual(listed, entry)
        assert.deepStrictEqual(yield* RemoteSkill.get(client, uri), entry)
        assert.deepStrictEqual(reads, [])
        const skill = yield* RemoteSkill.load(client, listed!)
        assert.deepStrictEqual(reads, [uri])
        assert.strictEqual(skill.instructions, "Use references/FORMS.md.\n")
        assert.deepStrictEqual(skill.paths, ["SKILL.md", "references/FORMS.md", "My%20logo.png"])
        const read = yield* skill.read("references/FORMS.md")
        assert.deepStrictEqual([read.text, read.mimeType], [forms, "text/markdown"])
        const image = yield* skill.read("./references/../My logo.png")
        assert.deepStrictEqual([image.text, image.bytes], [undefined, logo])
        // Verified files are not read again.
        for (const path of ["references/FORMS.md", `${root}/references/FORMS.md`, "My%20logo.png", "SKILL.md"]) {
          yield* skill.read(path)
        }
        assert.deepStrictEqual(reads, [uri, `${root}/references/FORMS.md`, `${root}/My%20logo.png`])
      }))
  }

  for (const listed of ["Q&A.md", "Q%26A.md", "100%25 %c3%bc.md", "a%2Fb.md"]) {
    it(`finds the listed file ${listed} by each way to encode its URI`, () => {
      const name = decodeURIComponent(listed)
      const files = [{ uri: `${root}/${listed}`, digest: "", size: 0 }]
      for (
        const reference of [listed, encodeURIComponent(name), encodeURI(name), `${root}/${encodeURIComponent(name)}`]
      ) {
        const isFound = reference !== "a/b.md"
        assert.strictEqual(listedUri(files, resolve(uri, reference)), isFound ? files[0]!.uri : undefined, reference)
      }
      assert.isUndefined(listedUri(files, resolve(uri, `${encodeURIComponent(name)}x`)))
      assert.isUndefined(listedUri(files, resolve(uri, "../Q&A.md")))
    })
  }

  it("prefers the file with the same URI to one with another encoding", () => {
    const files = ["x&y", "x%26y", "x%2526y"].map((name) => ({ uri: `${root}/${name}`, digest: "", size: 0 }))
    const found = ["x&y", "x%26y", "x%2526y"].map((name) => listedUri(files, resolve(uri, name)))
    assert.deepStrictEqual(found, files.map((file) => file.uri))
    assert.strictEqual(listedUri(files.slice(0, 1), resolve(uri, "x%26y")), files[0]!.uri)
  })

  it.effect("is loaded by its URI alone, listed or not", () =>
    Effect.gen(function*() {
      const { client } = serverOf({ skills: [], get: (asked) => asked === uri ? { ...entry } : undefined })
      const connected = yield* client
      assert.strictEqual((yield* RemoteSkill.load(connected, uri)).entry.uri, uri)
      assert.strictEqual(yield* reasonOf(RemoteSkill.load(connected, `${root}/none/SKILL.md`)), "SkillNotFound")
      const liar = serverOf({ get: () => ({ ...entry, uri: "skill://pdf/SKILL.md" }) })
      assert.strictEqual(yield* reasonOf(RemoteSkill.load(yield* liar.client, uri)), "SkillNotFound")
    }))

  it.effect("is refused if its SKILL.md has another size, digest or frontmatter", () =>
    Effect.gen(function*() {
      const served = (text: string): Setting => ({ files: { ...files, [uri]: text } })
      assert.deepStrictEqual(yield* refusal(served(`${markdown}more`)), ["SizeMismatch", 1])
      assert.deepStrictEqual(yield* refusal(served(markdown.replace("Use", "Eat"))), ["DigestMismatch", 1])
      for (
        const [text, reason] of [
          [markdown.replace("Works", "Plays"), "FrontmatterMismatch"],
          [markdown.replace("---\n\n", "license: MIT\n---\n\n"), "FrontmatterMismatch"],
          ["# No frontmatter", "InvalidMarkdown"],
          [markdown.replace("name: pdf", "name: [pdf"), "InvalidMarkdown"]
        ] as const
      ) {
        const changed = withFiles([fileOf(uri, text)])
        assert.deepStrictEqual(yield* refusal(served(text), {}, changed), [reason, 1])
      }
      assert.deepStrictEqual(
        yield* refusal(
          { read: () => ({ contents: [{ uri, blob: "//8=" }] }) },
          {},
          withFiles([
            fileOf(uri, Uint8Array.of(255, 255))
          ])
        ),
        ["InvalidMarkdown", 1]
      )
    }))

  it.effect("names the members of the frontmatter that differ", () =>
    Effect.gen(function*() {
      const text = markdown.replace("Works", "Plays")
      const { client } = serverOf({ files: { [uri]: text } })
      const error = yield* Effect.flip(RemoteSkill.load(yield* client, withFiles([fileOf(uri, text)])))
      assert.deepStrictEqual(
        (error as RemoteSkillError).reason._tag === "FrontmatterMismatch" && error.message,
        [
          `The frontmatter of the skill "${uri}" is not that of its entry ("description"): the skill was not used`
        ][0]
      )
    }))

  it.effect("does not return a file that fails verification, and does not remember it", () =>
    Effect.gen(function*() {
      const changing = { ...files }
      const { client } = serverOf({ files: changing })
      const skill = yield* RemoteSkill.load(yield* client, entry)
      const path = "references/FORMS.md"
      changing[`${root}/${path}`] = forms.replace("ä", "ö")
      assert.strictEqual(yield* reasonOf(skill.read(path)), "DigestMismatch")
      changing[`${root}/${path}`] = `${forms}!`
      assert.strictEqual(yield* reasonOf(skill.read(path)), "SizeMismatch")
      delete changing[`${root}/${path}`]
      assert.strictEqual(yield* reasonOf(skill.read(path)), "ProtocolError")
      changing[`${root}/${path}`] = forms
      assert.strictEqual((yield* skill.read(path)).text, forms)
    }))

  it.effect("does not read a file that its entry does not list", () =>
    Effect.gen(function*() {
      const { client, reads } = serverOf({ files: { ...files, [`${root}/new.md`]: "new" } })
      const skill = yield* RemoteSkill.load(yield* client, entry)
      for (
        const path of [
          "new.md",
          "",
          ".",
          "/references/FORMS.md",
          "../pdf/SKILL.md",
          "../../secret",
          "references",
          "file:///etc/passwd",
          "skill://acme/pdfs/SKILL.md",
          `${root}/../other/SKILL.md`
        ]
      ) {
        assert.strictEqual(yield* reasonOf(skill.read(path)), "UnlistedFile", path)
      }
      assert.deepStrictEqual(reads, [uri])
    }))

  it.effect("is refused without being read if its entry is invalid", () =>
    Effect.gen(function*() {
      const file = fileOf(uri, markdown)
      for (
        const invalid of [
          { ...entry, uri: `${root}/skill.md` },
          { ...entry, frontmatter: { ...entry.frontmatter, name: "other" } },
          { ...entry, uri: "skill://P/SKILL.md", frontmatter: { name: "P", description: "x" } },
          withFiles([]),
          withFiles([fileOf(`${root}/a`, "")]),
          withFiles([file, file]),
          withFiles([file, fileOf("skill://acme/other/a", "")]),
          withFiles([{ ...file, digest: file.digest.toUpperCase() }]),
          withFiles([{ ...file, digest: sha256("").slice(7) }]),
          withFiles([{ ...file, size: -1 }])
        ]
      ) assert.deepStrictEqual(yield* refusal({}, {}, invalid), ["InvalidEntry", 0])
    }))

  it.effect("is refused without being read if it exceeds a bound, and is loaded at the bound", () =>
    Effect.gen(function*() {
      const bytes = Buffer.byteLength(markdown) + Buffer.byteLength(forms) + logo.length
      const large = markdown.replace("---\n", `---\nx: ${"y".repeat(65_536)}\n`)
      assert.deepStrictEqual(yield* refusal({}, { limits: { maxFiles: 2 } }), ["LimitExceeded", 0])
      assert.deepStrictEqual(yield* refusal({}, { limits: { maxBytes: bytes - 1 } }), ["LimitExceeded", 0])
      assert.deepStrictEqual(yield* refusal({ files: { [uri]: large } }, {}, withFiles([fileOf(uri, large)])), [
        "InvalidMarkdown",
        1
      ])
      const { client } = serverOf()
      yield* RemoteSkill.load(yield* client, entry, { limits: { maxFiles: 3, maxBytes: bytes } })
      const many = [fileOf(uri, markdown), ...Array.from({ length: 511 }, (_, at) => fileOf(`${root}/${at}`, ""))]
      assert.isTrue(Result.isSuccess(RemoteSkill.check(withFiles(many))))
      assert.isTrue(Result.isFailure(RemoteSkill.check(withFiles([...many, fileOf(`${root}/x`, "")]))))
    }))

  it.effect("without digests is refused by default, and bounded by the bytes that are read", () =>
    Effect.gen(function*() {
      const dynamic = withFiles("dynamic")
      assert.deepStrictEqual(yield* refusal({}, {}, dynamic), ["NotVerifiable", 0])
      const { client: connected, reads } = serverOf()
      const client = yield* connected
      const maxBytes = Buffer.byteLength(markdown) + 2 * Buffer.byteLength(forms)
      const skill = yield* RemoteSkill.load(client, dynamic, { allowDynamic: true, limits: { maxBytes } })
      for (let round = 0; round < 2; round++) yield* skill.read("references/FORMS.md")
      assert.strictEqual(reads.length, 3)
      assert.strictEqual(yield* reasonOf(skill.read("My logo.png")), "LimitExceeded")
      assert.strictEqual(yield* reasonOf(skill.read("../x")), "UnlistedFile")
    }))

  it.effect("is refused if the server answers with other contents", () =>
    Effect.gen(function*() {
      for (
        const contents of [[], [{ uri: "skill://other", text: markdown }], [{ uri, blob: "%%%" }]]
      ) assert.deepStrictEqual(yield* refusal({ read: () => ({ contents }) }), ["InvalidContent", 1])
    }))

  it.effect("is loaded although its description is too long and its metadata has a number", () =>
    Effect.gen(function*() {
      const description = "word ".repeat(300).trim()
      const long = { name: "pdf", description, metadata: { version: 1 } }
      const text = `---\nname: pdf\ndescription: ${description}\nmetadata: { version: 1.0 }\n---\n\nText\n`
      const listed = { uri, frontmatter: long, resources: [fileOf(uri, text)] }
      const { client } = serverOf({ skills: [listed], files: { [uri]: text } })
      const skill = yield* RemoteSkill.load(yield* client, listed)
      assert.strictEqual(skill.instructions, "Text\n")
    }))

  it.effect("that is listed without files is left out of the list", () =>
    Effect.gen(function*() {
      const { resources: _, ...without } = entry
      const { client } = serverOf({
        skills: [without, entry, { ...entry, resources: "none" }, { ...entry, frontmatter: { name: "pdf" } }]
      })
      assert.deepStrictEqual(yield* RemoteSkill.list(yield* client), [entry])
    }))

  it.effect("is listed from the cache as long as the server allows it", () =>
    Effect.gen(function*() {
      const { client, counts } = serverOf({
        revision: "2026-07-28",
        hints: { ttlMs: 60_000, cacheScope: "public", resultType: "complete" }
      })
      const connected = yield* client
      yield* RemoteSkill.list(connected)
      yield* RemoteSkill.list(connected)
      assert.strictEqual(counts.get("skills/list"), 1)
    }))

  it.effect("of a server without the extension is not asked for", () =>
    Effect.gen(function*() {
      const client = yield* serverOf().client
      // The extension is declared, but not the setting for directories.
      const asked = client.request(SkillMessage.ReadDirectory, { uri: root })
      assert.strictEqual(yield* reasonOf(asked), "Unsupported")
    }))
})

describe("a fingerprint", () => {
  it.effect("is that of the URI, the frontmatter and the files, in any order", () =>
    Effect.gen(function*() {
      const of = RemoteSkill.fingerprint
      const own = yield* of(entry)
      assert.match(own!, /^sha256:[0-9a-f]{64}$/)
      assert.strictEqual(
        yield* of(withFiles((entry.resources as ReadonlyArray<SkillMessage.SkillFile>).toReversed())),
        own
      )
      for (
        const other of [
          { ...entry, uri: `${uri}x` },
          { ...entry, frontmatter: { ...entry.frontmatter, "allowed-tools": "Bash" } },
          withFiles([fileOf(uri, markdown)]),
          withFiles(
            (entry.resources as ReadonlyArray<SkillMessage.SkillFile>).map((file) => ({ ...file, digest: sha256("") }))
          )
        ]
      ) assert.notStrictEqual(yield* of(other), own)
      assert.strictEqual(yield* of(withFiles("dynamic")), undefined)
    }))
})

it.prop(
  "no reference leads out of the folder of the skill",
  [Schema.String, Schema.Array(Schema.Literals(["..", ".", "a", "", "/", "%2e%2e", root, "skill://"]))],
  ([text, parts]) => {
    for (const reference of [text, parts.join("/"), parts.join("")]) {
      for (const found of resolve(uri, reference)) {
        assert.isTrue(found.startsWith(`${root}/`) && !found.split("/").includes(".."), found)
      }
    }
  }
)
