/**
 * Skills (SEP-2640) between Skein and SDK v2. Both serve the same folder, and each client lists, verifies and reads the
 * skills of the other side's server.
 *
 * In 2026-07-28 the client of the SDK requires `ttlMs` and `cacheScope` in the result of `resources/directory/read`. In
 * the specification `ReadResourceDirectoryResult` extends `PaginatedResult` only, which has neither.
 */
import { SkillsClient, SkillVerificationError } from "@modelcontextprotocol/client/ext/skills"
import { McpServer as SdkServer } from "@modelcontextprotocol/server"
import { SkillsExtension, type SkillSource } from "@modelcontextprotocol/server/ext/skills"
import { loadSkills } from "@modelcontextprotocol/server/ext/skills/node"
import * as RemoteSkill from "@skein/skills/RemoteSkill"
import type * as WireSkill from "@skein/skills/SkillMessage"
import * as McpServer from "@skein/server/McpServer"
import * as NodeSkills from "@skein/skills/NodeSkills"
import * as Skill from "@skein/skills/Skill"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest"
import * as z from "zod/v4"
import * as V2 from "../servers/sdkV2.ts"
import type { HttpServer } from "../servers/httpServer.ts"
import * as SdkV2 from "../sdkV2Client.ts"
import * as Skein from "../skeinClient.ts"
import { startServer } from "../skeinServer.ts"

const revisions = ["2025-11-25", "2026-07-28"] as const

/** Frontmatter in the notations that authors use: block scalars, sequences, comments, and texts that look like others. */
const commits = `---
# How this team writes commits
name: commits
description: >-
  Writes the message of a commit.
  Use it before every commit.
license: "MIT"
metadata:
  version: '1.0'
  released: 2026-07-28
  colour: no
allowed-tools: [Read, 'Bash(git *)']
steps:
  - {first: 1, second: .5}
  - null
notes: |
  One line.

  Another line.
---

Look at references/style.md.
`

const files: Readonly<Record<string, string | Uint8Array>> = {
  "git/commits/SKILL.md": commits,
  "git/commits/references/style.md": "In the imperative.\n",
  "git/commits/references/Q&A (ü) 100%.md": "Why?\n",
  "git/commits/assets/dot.png": Uint8Array.of(0x89, 0, 255),
  "git/commits/squash/SKILL.md": "---\nname: squash\ndescription: Squashes commits\n---\nSquash them.\n",
  "greet/SKILL.md": "\ufeff---\r\nname: greet\r\ndescription: Greets people\r\n---\r\n\r\nSay hello.\r\n"
}
const root = "skill://docs/git/commits"
const uri = `${root}/SKILL.md`

let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "skein-skills-"))
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(join(folder, path), content)
  }
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** A skill as a value, with texts that YAML reads as something else if they are not quoted. */
const odd = Skill.make({
  name: "odd",
  description: "Has a #, a colon: and \"quotes\"; 'more', a line\nbreak, \u2028 and 🧶",
  compatibility: "- none",
  frontmatter: { metadata: { version: "1.0", "a: b": "no", empty: "" }, list: [1, 0.5, null, { yes: ["x"] }] },
  instructions: "Say nothing.",
  files: { "notes.txt": "Nothing\n" }
})

const skeinServer = () =>
  startServer(McpServer.layer(
    { name: "skein", version: "1.0.0", pageSize: 2 },
    Layer.mergeAll(
      NodeSkills.layer(folder, { prefix: "docs" }),
      Skill.layer(odd),
      Skill.dynamic({ name: "daily", description: "The day", instructions: Effect.succeed("All is well.") })
    )
  ))

/** Serves with SDK v2: with sessions in 2025-11-25, without in 2026-07-28. */
const serveSdk = (revision: (typeof revisions)[number], skills: SkillsExtension): Promise<HttpServer> => {
  const make = () => {
    const server = new SdkServer({ name: "sdk-v2", version: "1.0.0" })
    skills.attach(server)
    return server
  }
  return revision === "2026-07-28" ? V2.handler(make) : V2.sessions(make)
}

/** The entries with decoded URIs: Skein encodes `&` in the name of a file, and the SDK does not. */
const decoded = (entries: ReadonlyArray<WireSkill.Skill>) =>
  entries.map(({ resources, ...entry }) => ({
    ...entry,
    resources: resources === "dynamic"
      ? resources
      : resources.map((file) => ({ ...file, uri: decodeURIComponent(file.uri) }))
  }))

const bytesOf = (content: string | Uint8Array): Uint8Array =>
  typeof content === "string" ? new TextEncoder().encode(content) : Uint8Array.from(content)

/** The files of the skill in `git/commits`, by their decoded URIs. */
const served = () =>
  Object.fromEntries(
    Object.entries(files)
      .filter(([path]) => path.startsWith("git/commits/"))
      .map(([path, content]) => [`skill://docs/${path}`, bytesOf(content)])
  )

for (const revision of revisions) {
  const isModern = revision === "2026-07-28"

  describe(`${revision} · SDK v2's client · Skein's server`, () => {
    let server: Awaited<ReturnType<typeof startServer>>
    let connected: Awaited<ReturnType<typeof SdkV2.connectInteractive>>
    let skills: SkillsClient
    beforeAll(async () => {
      server = await skeinServer()
    })
    afterAll(() => server.close())
    beforeEach(async () => {
      connected = await SdkV2.connectInteractive(server.http, { revision })
      skills = new SkillsClient(connected.client)
    })
    afterEach(async () => {
      expect(connected.clientErrors).toEqual([])
      await connected.close()
    })

    it("lists all pages, with the entries that the SDK makes of the same folder", async () => {
      expect([skills.supported, skills.directoryRead]).toEqual([true, true])
      const listing = await skills.list()
      const inFolder = listing.skills.filter((entry) => entry.uri.startsWith("skill://docs/")) as Array<WireSkill.Skill>
      const { entries } = await loadSkills(folder, { prefix: "docs", strict: true })
      expect(decoded(inFolder)).toEqual(decoded(entries as ReadonlyArray<WireSkill.Skill>))
      expect(listing.skills.map((entry) => entry.uri)).toEqual([
        "skill://daily/SKILL.md",
        uri,
        `${root}/squash/SKILL.md`,
        "skill://docs/greet/SKILL.md",
        "skill://odd/SKILL.md"
      ])
      expect([listing.ttlMs, listing.cacheScope]).toEqual(isModern ? [0, "private"] : [undefined, undefined])
    })

    it("reads and verifies each file of a folder, and the body of each SKILL.md", async () => {
      const { skill } = await skills.get(uri)
      const read: Record<string, Uint8Array> = {}
      for (const file of skill.resources as ReadonlyArray<WireSkill.SkillFile>) {
        const { bytes, verified } = await skills.read(skill, file.uri)
        expect(verified).toBe(true)
        read[decodeURIComponent(file.uri)] = Uint8Array.from(bytes)
      }
      expect(read).toEqual(served())
      expect(await skills.read(skill)).toMatchObject({ body: "\nLook at references/style.md.\n" })
      const greet = await skills.get("skill://docs/greet/SKILL.md")
      expect(await skills.read(greet.skill)).toMatchObject({ body: "\nSay hello.\n" })
    })

    it("parses the frontmatter that Skein writes", async () => {
      const { skill } = await skills.get("skill://odd/SKILL.md")
      expect(skill.frontmatter).toMatchObject({ metadata: { version: "1.0", "a: b": "no", empty: "" } })
      // `read` compares it with the frontmatter of the file.
      expect(await skills.read(skill)).toMatchObject({ body: "\nSay nothing.\n", frontmatter: skill.frontmatter })
      expect((await skills.read(skill, "notes.txt")).text).toBe("Nothing\n")
    })

    it("reads a skill without digests", async () => {
      const { skill } = await skills.get("skill://daily/SKILL.md")
      expect(await skills.read(skill)).toMatchObject({ verified: false, body: "\nAll is well.\n" })
    })

    it("rejects unknown skills and files that are not listed", async () => {
      await expect(skills.get("skill://none/SKILL.md")).rejects.toMatchObject({ code: -32602 })
      await expect(skills.get(`${root}/references/style.md`)).rejects.toMatchObject({ code: -32602 })
      const { skill } = await skills.get(uri)
      await expect(skills.read(skill, "references/none.md")).rejects.toBeInstanceOf(SkillVerificationError)
    })

    it("lists a folder in pages, in 2026-07-28 without the caching fields that the SDK requires", async () => {
      const page = z.object({
        resources: z.array(z.looseObject({ name: z.string() })),
        nextCursor: z.string().optional()
      })
      const read = (params: { readonly uri: string; readonly cursor?: string | undefined }) =>
        connected.client.request({ method: "resources/directory/read", params }, page)
      const first = await read({ uri: root })
      const second = await read({ uri: root, cursor: first.nextCursor })
      const names = [...first.resources, ...second.resources].map(({ mimeType, name }) => [name, mimeType])
      expect(names).toEqual([
        ["commits", "text/markdown"],
        ["assets", "inode/directory"],
        ["references", "inode/directory"],
        ["squash", "inode/directory"]
      ])
      await expect(read({ uri })).rejects.toMatchObject({ code: -32602 })
      const listed = skills.readDirectory(root)
      if (isModern) await expect(listed).rejects.toThrow("ttlMs")
      else expect((await listed).resources.map(({ name, mimeType }) => [name, mimeType])).toEqual(names)
    })
  })

  describe(`${revision} · Skein's client · SDK v2's server`, () => {
    let server: HttpServer
    let connected: Awaited<ReturnType<typeof Skein.connectInteractive>>
    const connect = async (skills: SkillsExtension) => {
      server = await serveSdk(revision, skills)
      connected = await Skein.connectInteractive(server.address, { revisions: [revision] })
    }
    afterEach(async () => {
      await connected.close()
      await server.close()
    })

    it("lists all pages, and reads and verifies each file of a folder", async () => {
      const catalog = await loadSkills(folder, { prefix: "docs", strict: true, pageSize: 1 })
      await connect(catalog)
      const { client, run } = connected
      const entries = await run(RemoteSkill.list(client))
      expect(entries).toEqual(catalog.entries)
      expect(await run(RemoteSkill.get(client, uri))).toEqual(entries[0])
      const skill = await run(RemoteSkill.load(client, uri))
      expect(skill.instructions).toBe("Look at references/style.md.\n")
      const read: Record<string, Uint8Array> = {}
      for (const path of skill.paths) {
        const file = await run(skill.read(path))
        read[decodeURIComponent(file.uri)] = Uint8Array.from(file.bytes)
      }
      expect(read).toEqual(served())
      // By its name in the file system too.
      expect((await run(skill.read("references/Q&A (ü) 100%.md"))).text).toBe("Why?\n")
      const greet = await run(RemoteSkill.load(client, "skill://docs/greet/SKILL.md"))
      expect(greet.instructions).toBe("Say hello.\r\n")
    })

    it("rejects unknown skills, unlisted files, and skills without digests", async () => {
      const catalog = await loadSkills(folder, { prefix: "docs" })
      await connect(catalog)
      const { client, run } = connected
      const reasonOf = (effect: ReturnType<typeof RemoteSkill.load>) =>
        run(Effect.map(Effect.flip(effect), ({ reason }) => reason._tag))
      expect(await reasonOf(RemoteSkill.load(client, "skill://docs/none/SKILL.md"))).toBe("SkillNotFound")
      const skill = await run(RemoteSkill.load(client, uri))
      const unlisted = await run(Effect.flip(skill.read("references/none.md")))
      expect(unlisted.reason._tag).toBe("UnlistedFile")
      const dynamic = { ...skill.entry, resources: "dynamic" as const }
      expect(await reasonOf(RemoteSkill.load(client, dynamic))).toBe("NotVerifiable")
      const loaded = await run(RemoteSkill.load(client, dynamic, { allowDynamic: true }))
      expect((await run(loaded.read("references/style.md"))).text).toBe("In the imperative.\n")
    })

    it("rejects files that differ from their entry", async () => {
      const entry = (await loadSkills(folder, { prefix: "docs" })).entries[0]!
      let text = commits
      const source: SkillSource = {
        list: async () => ({ skills: [] }),
        get: async () => entry,
        read: async () => ({ text })
      }
      await connect(new SkillsExtension({ source }))
      const { client, run } = connected
      expect(await run(RemoteSkill.list(client))).toEqual([])
      expect((await run(RemoteSkill.load(client, uri))).entry).toEqual(entry)
      const reasons: Array<string> = []
      for (const changed of [`${commits}And more.`, commits.replace("Look", "Peek")]) {
        text = changed
        reasons.push((await run(Effect.flip(RemoteSkill.load(client, uri)))).reason._tag)
      }
      expect(reasons).toEqual(["SizeMismatch", "DigestMismatch"])
    })

    it("lists the skills of a catalog that is loaded again", async () => {
      const path = join(folder, "later/SKILL.md")
      try {
        const catalog = await loadSkills(folder, { prefix: "docs" })
        await connect(catalog)
        const { client, run } = connected
        expect(await run(RemoteSkill.list(client))).toHaveLength(3)
        mkdirSync(dirname(path))
        writeFileSync(path, "---\nname: later\ndescription: Comes later\n---\n")
        expect(await catalog.reload()).toMatchObject({ added: ["skill://docs/later/SKILL.md"], listChanged: true })
        expect(await run(RemoteSkill.list(client))).toHaveLength(4)
      } finally {
        rmSync(dirname(path), { recursive: true, force: true })
      }
    })
  })
}
