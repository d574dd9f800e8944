/** A scripted server with skills, whose entries and files each test chooses. */
import type { JsonObject } from "@skein/protocol/JsonRpc"
import type * as Revision from "@skein/protocol/Revision"
import * as SkillMessage from "@skein/skills/SkillMessage"
import * as ScriptedServer from "@skein/testing/ScriptedServer"
import { createHash } from "node:crypto"
import * as Client from "@skein/client/Client"

export const sha256 = (content: string | Uint8Array): string =>
  `sha256:${createHash("sha256").update(content).digest("hex")}`

export const fileOf = (uri: string, content: string | Uint8Array) => ({
  uri,
  digest: sha256(content),
  size: Buffer.byteLength(content)
})

export const root = "skill://acme/pdf"
export const uri = `${root}/SKILL.md`
export const frontmatter = { name: "pdf", description: "Works with PDF documents" }
export const markdown = `---\nname: pdf\ndescription: Works with PDF documents\n---\n\nUse references/FORMS.md.\n`
export const forms = "All forms: ä\n"
export const logo = Uint8Array.of(0x89, 0, 255)

export const files: Readonly<Record<string, string | Uint8Array>> = {
  [uri]: markdown,
  [`${root}/references/FORMS.md`]: forms,
  [`${root}/My%20logo.png`]: logo
}

export const entry: SkillMessage.Skill = {
  uri,
  frontmatter,
  resources: Object.entries(files).map(([uri, content]) => fileOf(uri, content))
}

const contents = (uri: string, content: string | Uint8Array): JsonObject =>
  typeof content === "string"
    ? { uri, text: content, mimeType: "text/markdown" }
    : { uri, blob: Buffer.from(content).toString("base64"), mimeType: "image/png" }

export interface Setting {
  readonly skills?: ReadonlyArray<unknown>
  readonly files?: Readonly<Record<string, string | Uint8Array>>
  /** Replaces the result of `resources/read`. */
  readonly read?: (uri: string) => JsonObject
  readonly get?: (uri: string) => JsonObject | undefined
  readonly hints?: JsonObject
  readonly revision?: Revision.Revision
}

/** A server, and the URIs that were read from it. */
export const serverOf = (setting: Setting = {}) => {
  const { files: served = files, hints = {}, revision = "2025-11-25", skills = [entry] } = setting
  const reads: Array<string> = []
  const counts = new Map<string, number>()
  const script: ScriptedServer.Script = ({ method, params = {} }) => {
    counts.set(method, (counts.get(method) ?? 0) + 1)
    const asked = String(params["uri"])
    switch (method) {
      case "skills/list":
        return ScriptedServer.success({ skills, ...hints })
      case "skills/get": {
        const found = setting.get === undefined
          ? skills.find((skill) => (skill as JsonObject)["uri"] === asked)
          : setting.get(asked)
        return found === undefined
          ? ScriptedServer.failure(-32602, "Unknown")
          : ScriptedServer.success({ skill: found, ...hints })
      }
      case "resources/read": {
        reads.push(asked)
        if (setting.read !== undefined) return ScriptedServer.success(setting.read(asked))
        const content = served[asked]
        return content === undefined
          ? ScriptedServer.failure(-32002, "Resource not found")
          : ScriptedServer.success({ contents: [contents(asked, content)] })
      }
      default:
        return ScriptedServer.methodNotFound(method)
    }
  }
  const server = ScriptedServer.make(
    ScriptedServer.handshake(revision, script, { resources: {}, extensions: { [SkillMessage.extension]: {} } })
  )
  return { server, reads, counts, client: Client.make(server.transport) }
}
