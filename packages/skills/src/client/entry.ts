/**
 * Checks the entries of skills, before anything of a skill is read (SEP-2640, skill entries and limits).
 */
import * as SkillMessage from "../shared/SkillMessage.ts"
import { exceededBound, type SkillBounds } from "../shared/skillBounds.ts"
import * as SkillMarkdown from "../shared/SkillMarkdown.ts"
import { quote } from "@skein/protocol/Text"
import { InvalidEntry, LimitExceeded, NotVerifiable, type Reason, RemoteSkillError } from "./RemoteSkillError.ts"

/** The bounds of a skill, and whether it may have no digests. */
export interface SkillTerms extends SkillBounds {
  readonly allowDynamic: boolean
}

/** Makes the failure of a skill. */
export const skillError = (skill: string, reason: Reason): RemoteSkillError => new RemoteSkillError({ reason, skill })

const invalid = ({ uri }: SkillMessage.Skill, problem: string): RemoteSkillError =>
  skillError(uri, new InvalidEntry({ message: `The entry of the skill ${quote(uri)} is invalid: ${problem}` }))

const filesProblem = (files: ReadonlyArray<SkillMessage.SkillFile>, uri: string): string | undefined => {
  const inside = `${SkillMessage.rootOf(uri)}/`
  const seen = new Set<string>()
  for (const file of files) {
    if (seen.has(file.uri)) return `it lists ${quote(file.uri)} twice`
    seen.add(file.uri)
    if (!file.uri.startsWith(inside)) return `${quote(file.uri)} is outside of the folder of the skill`
    if (!SkillMessage.isDigest(file.digest)) {
      return `the digest of ${quote(file.uri)} is not sha256: and 64 hexadecimal digits`
    }
    if (file.size < 0) return `the size of ${quote(file.uri)} is negative`
  }
  return seen.has(uri) ? undefined : "it does not list its SKILL.md"
}

/** Returns why a skill must not be loaded, or `undefined`. */
export const entryProblem = (
  entry: SkillMessage.Skill,
  { allowDynamic, ...bounds }: SkillTerms
): RemoteSkillError | undefined => {
  const { frontmatter: { name }, resources, uri } = entry
  const problem = SkillMarkdown.nameProblem(name)
  if (problem !== undefined) return invalid(entry, problem)
  if (SkillMessage.nameOf(uri) !== name) {
    return invalid(entry, `its URI must end with /${name}/${SkillMessage.fileName}`)
  }
  if (resources === "dynamic") {
    return allowDynamic ? undefined : skillError(
      uri,
      new NotVerifiable({
        message: `The skill ${quote(uri)} has no digests, so that it cannot be verified (allowDynamic)`
      })
    )
  }
  const exceeded = exceededBound(uri, resources.map(({ size }) => size), bounds)
  if (exceeded !== undefined) return skillError(uri, new LimitExceeded(exceeded))
  const fault = filesProblem(resources, uri)
  return fault === undefined ? undefined : invalid(entry, fault)
}

/**
 * Resolves a reference within a skill: a path relative to its folder, or a URI. Returns the URIs that it may stand for, the
 * likeliest first, and none for a reference that leads out of the folder.
 */
export const resolve = (uri: string, reference: string): ReadonlyArray<string> => {
  const root = `${SkillMessage.rootOf(uri)}/`
  if (reference.includes("://")) {
    const isInside = reference.startsWith(root) && !/\/\.\.?(?:\/|$)/.test(reference)
    return isInside ? [reference] : []
  }
  const segments: Array<string> = []
  for (const segment of reference.split("/")) {
    if (segment === ".." && segments.pop() === undefined) return []
    if (segment !== "." && segment !== ".." && segment !== "") segments.push(segment)
  }
  if (reference.startsWith("/") || segments.length === 0) return []
  const path = segments.join("/")
  const encoded = SkillMessage.encodePath(path)
  // A reference in Markdown may be percent-encoded already.
  return [...new Set(encoded === undefined ? [] : [root + path, root + encoded])]
}

const decoded = (segment: string): string => {
  try {
    return decodeURIComponent(segment)
  } catch {
    return segment
  }
}

/** Returns the form of a URI in which each segment is encoded as `SkillMessage.encodePath` does. */
const normalized = (uri: string): string =>
  uri.split("/").map((segment) => encodeURIComponent(decoded(segment.toWellFormed()))).join("/")

/**
 * Returns the listed URI that one of the candidates of {@link resolve} stands for, or `undefined`. Servers encode different
 * characters: SDK v2 lists a file `Q&A.md` by that name, and Skein as `Q%26A.md`. A URI that is the same is preferred.
 */
export const listedUri = (
  files: ReadonlyArray<SkillMessage.SkillFile>,
  candidates: ReadonlyArray<string>
): string | undefined => {
  const listed = new Set(files.map(({ uri }) => uri))
  const same = candidates.find((uri) => listed.has(uri))
  if (same !== undefined || candidates.length === 0) return same
  const wanted = new Set(candidates.map(normalized))
  return files.find(({ uri }) => wanted.has(normalized(uri)))?.uri
}
