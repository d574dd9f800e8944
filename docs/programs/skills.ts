import type * as Client from "@skein/client/Client"
import * as RemoteSkill from "@skein/skills/RemoteSkill"
import * as SkillToolkit from "@skein/skills/SkillToolkit"
import * as Catalog from "@skein/server/Catalog"
import * as McpServer from "@skein/server/McpServer"
import * as NodeSkills from "@skein/skills/NodeSkills"
import * as Skill from "@skein/skills/Skill"
import * as LanguageModel from "effect/ai/LanguageModel"
import * as Effect from "effect/Effect"

// #region value
export const refunds = Skill.make({
  name: "refunds",
  description: "Refunds an order. Use it when a customer asks for money back.",
  instructions: "Find the order with the tool find_order. Then follow references/limits.md.",
  files: { "references/limits.md": "Above 500 EUR a manager must agree.\n" },
  prefix: "shop"
})

export const Shop = McpServer.layer({ name: "shop", version: "1.0.0" }, Skill.layer(refunds))
// #endregion

// #region folder
export const served = (folder: string) =>
  McpServer.layer(
    { name: "docs", version: "1.0.0" },
    NodeSkills.layer(folder, { prefix: "docs", watchInterval: "2 seconds" })
  )
// #endregion

export const check = (folder: string) =>
  Effect.map(NodeSkills.list(folder), ({ leftOut, skills }) => [
    ...leftOut.map(({ error, path }) => `${path} is left out: ${error.message}`),
    ...skills.flatMap(({ changes, path }) => changes.map((change) => `${path}: ${change}`))
  ])

export const daily = (report: Effect.Effect<string>) =>
  Catalog.visibleTo(
    ({ principal }) => principal !== undefined,
    Skill.dynamic({ name: "daily", description: "The state of the shop today.", instructions: report })
  )

// #region load
export const limits = (client: Client.Client) =>
  Effect.gen(function*() {
    const entries = yield* RemoteSkill.list(client)
    const entry = entries.find(({ frontmatter }) => frontmatter.name === "refunds")!
    const skill = yield* RemoteSkill.load(client, entry)
    const file = yield* skill.read("references/limits.md")
    return { instructions: skill.instructions, limits: file.text }
  }).pipe(
    Effect.catchReasons("RemoteSkillError", {
      DigestMismatch: ({ file }) => Effect.fail(`${file} is not the file that was listed`),
      FrontmatterMismatch: ({ members }) => Effect.fail(`the skill was described differently: ${members.join(", ")}`)
    })
  )
// #endregion

export const answer = (servers: Readonly<Record<string, Client.Client>>, question: string) =>
  Effect.gen(function*() {
    const skills = yield* SkillToolkit.make(servers, { needsApproval: (server) => server !== "shop" })
    return yield* LanguageModel.generateText({
      prompt: [
        { role: "system", content: `You help customers.\n\n${skills.instructions}` },
        { role: "user", content: question }
      ],
      toolkit: skills
    })
  })

/** Whether the user has approved the skill as it is now. */
export const isApproved = (server: string, entry: RemoteSkill.Entry, approvals: ReadonlyMap<string, string>) =>
  Effect.map(
    RemoteSkill.fingerprint(entry),
    (fingerprint) => fingerprint !== undefined && approvals.get(`${server} ${entry.uri}`) === fingerprint
  )
