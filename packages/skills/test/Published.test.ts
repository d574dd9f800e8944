/** Public collections of skills, in packages with versions and a lock file of their own. */
import { describe, expect, it } from "@effect/vitest"
import * as Client from "@skein/client/Client"
import * as InMemoryTransport from "@skein/server/InMemoryTransport"
import * as McpServer from "@skein/server/McpServer"
import * as NodeSkills from "@skein/skills/NodeSkills"
import * as RemoteSkill from "@skein/skills/RemoteSkill"
import * as SkillMarkdown from "@skein/skills/SkillMarkdown"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { existsSync, readdirSync } from "node:fs"
import { join } from "node:path"

/** The folder of a collection, how many `SKILL.md` it has, and those that are left out, with the reason. */
const collections: Readonly<Record<string, readonly [skills: number, leftOut: Readonly<Record<string, RegExp>>]>> = {
  "@ant-design/x-skill": [12, {}],
  "@framers/agentos-skills": [88, { "registry/curated/email-intelligence": /its description must have 1 to 1024/ }],
  "ai-labs-claude-skills": [27, {}],
  "cc-sdd": [136, {}],
  "ecc-universal": [676, {
    "docs/ja-JP/skills/project-guidelines-example": /does not begin with frontmatter/,
    "docs/ja-JP/skills/verification-loop": /does not begin with frontmatter/,
    "docs/zh-CN/skills/browser-qa": /does not begin with frontmatter/,
    "docs/zh-TW/skills/project-guidelines-example": /does not begin with frontmatter/,
    "docs/zh-TW/skills/verification-loop": /does not begin with frontmatter/
  }],
  specweave: [51, {}]
}

const folderOf = (name: string): string => join(import.meta.dirname, "published/node_modules", name)

const isInstalled = Object.keys(collections).every((name) => existsSync(folderOf(name)))

const title = isInstalled
  ? "a public collection of skills"
  : "a public collection of skills (skipped: npm ci --ignore-scripts --prefix packages/skills/test/published installs them)"

/** The paths of all `SKILL.md` in a folder, apart from those in folders that begin with a dot. */
const markdownOf = (folder: string): ReadonlyArray<string> =>
  readdirSync(folder, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile() && entry.name === "SKILL.md")
    .map(({ parentPath }) => parentPath.slice(folder.length + 1))
    .filter((path) => !path.split("/").some((segment) => segment.startsWith(".") || segment === "node_modules"))

describe.skipIf(!isInstalled)(title, () => {
  it.live.each(Object.entries(collections))(
    "has every skill listed, loaded and verified, or left out with a reason: %s",
    ([name, [count, expected]]) =>
      Effect.gen(function*() {
        const folder = folderOf(name)
        const options = { include: (path: string) => !path.split("/").includes("node_modules") }
        const { leftOut, skills } = yield* NodeSkills.list(folder, options)
        const paths = markdownOf(folder)
        expect(paths).toHaveLength(count)
        expect([...skills, ...leftOut].map(({ path }) => path).sort()).toEqual(paths.toSorted())
        expect(leftOut.map(({ path }) => path).sort()).toEqual(Object.keys(expected).sort())
        for (const { error, path } of leftOut) expect(error.message).toMatch(expected[path]!)

        const context = yield* Layer.build(
          McpServer.layer({ name: "skills", version: "1.0.0" }, NodeSkills.layer(folder, options))
        )
        const client = yield* Client.make(InMemoryTransport.transport(Context.get(context, McpServer.McpServer).serve))
        const entries = yield* RemoteSkill.list(client)
        expect(entries).toHaveLength(skills.length)
        for (const entry of entries) {
          expect(SkillMarkdown.formatProblem(entry.frontmatter)).toBeUndefined()
          const skill = yield* RemoteSkill.load(client, entry)
          expect(skill.instructions).not.toBe("")
          for (const path of skill.paths) yield* skill.read(path)
        }
      }).pipe(Effect.scoped),
    120_000
  )
})
