/**
 * Prepares the skills of a folder: repairs imperfections of a `SKILL.md`, gives each skill the path of its name, and leaves
 * out the skills that cannot be served.
 */
import { quote } from "@skein/protocol/Text"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { Hint } from "@skein/server/Caching"
import * as SkillMarkdown from "../shared/SkillMarkdown.ts"
import * as SkillMessage from "../shared/SkillMessage.ts"
import type { SkillBounds } from "../shared/skillBounds.ts"
import type { FolderContent, FoundSkill, LeftOut } from "./nodeFolder.ts"
import type { SkillError } from "./SkillError.ts"
import { bodyOf, invalidSkill, serve, type ServedSkill } from "./skillFiles.ts"

/** A skill that is served, with the changes to it. */
export interface Prepared {
  /** The path of the folder of the skill. */
  readonly path: string
  readonly skill: ServedSkill
  /** One line for each repair, and for a path that differs from that of the folder. */
  readonly changes: ReadonlyArray<string>
}

/** The skills of a folder that are served, and the parts that are not. */
export interface PreparedFolder {
  readonly skills: ReadonlyArray<Prepared>
  readonly leftOut: ReadonlyArray<LeftOut>
}

/** The repaired `SKILL.md` files of a folder, by the roots of their skills. */
type Repairs = ReadonlyMap<string, SkillMarkdown.Repaired>

const lastOf = (path: string): string => path.split("/").at(-1)!

const repairOf = ({ files, path }: FoundSkill): Result.Result<SkillMarkdown.Repaired, SkillError> => {
  const text = bodyOf(files.get(SkillMessage.fileName)!)
  const repaired = typeof text === "string"
    ? SkillMarkdown.repair(text, lastOf(path))
    : Result.fail(`its ${SkillMessage.fileName} is not text in UTF-8`)
  return Result.mapError(repaired, (problem) => invalidSkill(path, problem))
}

const utf8 = /* @__PURE__ */ new TextEncoder()

/** The beginning of a path in which the folder of each skill has the name of the skill. */
const namedRoot = (root: string, repairs: Repairs): string => {
  let at = ""
  return root.split("/").slice(0, -1).map((segment) => {
    at += `${segment}/`
    return `${repairs.get(at)?.frontmatter.name ?? segment}/`
  }).join("")
}

/**
 * The files of a skill as they are served. A skill within it has its repaired `SKILL.md` and its path here too, because both
 * list the same files.
 */
const servedFiles = ({ files, root }: FoundSkill, repairs: Repairs): ReadonlyMap<string, Uint8Array> => {
  const start = namedRoot(root, repairs).length
  return new Map([...files].map(([file, bytes]) => {
    const at = root + file
    const folder = at.slice(0, at.lastIndexOf("/") + 1)
    const name = lastOf(file)
    const repaired = name === SkillMessage.fileName ? repairs.get(folder) : undefined
    const served = repaired === undefined || repaired.repairs.length === 0 ? bytes : utf8.encode(repaired.markdown)
    return [namedRoot(folder, repairs).slice(start) + name, served]
  }))
}

/**
 * Gives each skill the path of its name. A skill whose path another skill or folder has already is left out: its files would
 * take the place of others. Outer skills come first.
 */
const takeNames = (
  skills: ReadonlyArray<FoundSkill>,
  repairs: Map<string, SkillMarkdown.Repaired>
): ReadonlyArray<LeftOut> => {
  const folders = new Set<string>()
  for (const { files, root } of skills) {
    for (const file of files.keys()) {
      for (let at = file.lastIndexOf("/"); at >= 0; at = file.lastIndexOf("/", at - 1)) {
        folders.add(root + file.slice(0, at + 1))
        if (at === 0) break
      }
    }
    folders.add(root)
  }
  const taken = new Map<string, string>()
  return skills.toSorted((a, b) => a.root.split("/").length - b.root.split("/").length).flatMap(({ path, root }) => {
    const name = repairs.get(root)?.frontmatter.name
    if (name === undefined || root === "") return []
    const named = namedRoot(root, repairs)
    const beside = root.replace(/[^/]*\/$/, `${name}/`)
    const other = taken.get(named) ?? (beside !== root && folders.has(beside) ? beside.slice(0, -1) : undefined)
    if (other === undefined) {
      taken.set(named, path)
      return []
    }
    repairs.delete(root)
    return [{
      path,
      error: invalidSkill(path, `its name ${quote(name)} is that of ${quote(other)}: rename one of them`)
    }]
  })
}

/** Prepares the skills of a folder. */
export const prepare = (
  { leftOut, skills }: FolderContent,
  { bounds, hint, prefix }: { readonly bounds: SkillBounds; readonly hint: Hint; readonly prefix: string | undefined }
): Effect.Effect<PreparedFolder> =>
  Effect.gen(function*() {
    const repairs = new Map<string, SkillMarkdown.Repaired>()
    const omitted: Array<LeftOut> = [...leftOut]
    for (const skill of skills) {
      const repaired = repairOf(skill)
      if (Result.isSuccess(repaired)) repairs.set(skill.root, repaired.success)
      else omitted.push({ path: skill.path, error: repaired.failure })
    }
    omitted.push(...takeNames(skills, repairs))
    const prepared: Array<Prepared> = []
    for (const found of skills) {
      const { path, root } = found
      const repaired = repairs.get(root)
      if (repaired === undefined) continue
      const { frontmatter: { name }, repairs: changes } = repaired
      const named = root === "" ? name : namedRoot(root, repairs).slice(0, -1)
      const content = { path: prefix === undefined ? named : `${prefix}/${named}`, files: servedFiles(found, repairs) }
      const served = yield* Effect.result(serve(content, bounds, hint))
      if (Result.isFailure(served)) {
        omitted.push({ path, error: served.failure })
        continue
      }
      const renamed = name === lastOf(path) ? [] : [`its folder has another name than ${name}, which its URI has`]
      prepared.push({ path, skill: served.success, changes: [...changes, ...renamed] })
    }
    return { skills: prepared, leftOut: omitted }
  })
