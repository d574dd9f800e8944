/**
 * The file `SKILL.md`: YAML frontmatter between two lines of `---`, then instructions in Markdown (Agent Skills
 * specification, to which SEP-2640 delegates the format).
 *
 * YAML is read with the types of JSON, so that a date stays a text. Its size, its depth and its aliases are bounded,
 * because a few lines with nested aliases stand for billions of values.
 *
 * @example
 * const parsed = SkillMarkdown.parse("---\nname: refunds\ndescription: Refunds orders\n---\n\nAsk for the order first.\n")
 */
import * as Result from "effect/Result"
import { CORE_SCHEMA, FAILSAFE_SCHEMA, load } from "js-yaml"
import * as CanonicalJson from "@skein/protocol/CanonicalJson"
import * as Json from "@skein/protocol/Json"
import { isObject, type JsonObject } from "@skein/protocol/JsonRpc"
import * as Nesting from "@skein/protocol/Nesting"
import type { Frontmatter } from "./SkillMessage.ts"
import { clip, cut, quote } from "@skein/protocol/Text"

/** A parsed `SKILL.md`. */
export interface SkillMarkdown {
  readonly frontmatter: Frontmatter
  /** The text after the frontmatter, without the empty lines before it. */
  readonly instructions: string
}

/**
 * How many characters the frontmatter has at most: 65,536.
 *
 * @example
 * const isSupported = yaml.length <= SkillMarkdown.maxFrontmatterChars
 */
export const maxFrontmatterChars = 65_536

const maxValues = 10_000
const maxDepth = 32
const maxAliases = 100

/** Copies a tree of JSON values. Returns a text with the problem for other values, and for too many of them. */
const toJson = (root: unknown): Result.Result<unknown, string> => {
  let count = 0
  const copy = (value: unknown, depth: number): unknown => {
    if (++count > maxValues) throw new Error(`it has more than ${maxValues} values`)
    if (depth > maxDepth) throw new Error(`it has more than ${maxDepth} levels`)
    if (Array.isArray(value)) return value.map((item) => copy(item, depth + 1))
    if (isObject(value)) {
      return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, copy(item, depth + 1)]))
    }
    if (typeof value === "number" && !Number.isFinite(value)) throw new Error(`${value} has no form in JSON`)
    return value ?? null
  }
  return Result.try({ try: () => copy(root, 0), catch: (error) => (error as Error).message })
}

const firstLine = (error: unknown): string =>
  Nesting.exceedsStack(error)
    ? `it ${Nesting.problem}`
    : clip((error instanceof Error ? error.message : String(error)).split("\n")[0] ?? "", 300)

/** Returns the frontmatter as YAML and the rest of a `SKILL.md`, or `undefined` without frontmatter. */
const split = (markdown: string): readonly [yaml: string, rest: string] | undefined => {
  const text = markdown.replace(/^\ufeff/, "")
  const start = /^---[ \t]*\r?\n/.exec(text)?.[0].length
  if (start === undefined) return undefined
  for (let at = start; at < text.length;) {
    const end = text.indexOf("\n", at)
    const line = end < 0 ? text.slice(at) : text.slice(at, end)
    const next = end < 0 ? text.length : end + 1
    if (line.startsWith("---") && line.slice(3).trim() === "") return [text.slice(start, at), text.slice(next)]
    at = next
  }
  return undefined
}

/** The frontmatter and the instructions of a `SKILL.md`, apart. */
const splitMarkdown = (
  markdown: string,
  maxChars = maxFrontmatterChars
): Result.Result<readonly [yaml: string, rest: string], string> => {
  const parts = split(markdown)
  if (parts === undefined) return Result.fail("it does not begin with frontmatter between two lines of ---")
  return parts[0].length > maxChars
    ? Result.fail(`its frontmatter has ${parts[0].length} characters, more than ${maxChars}`)
    : Result.succeed(parts)
}

const loadYaml = (yaml: string, schema = CORE_SCHEMA): Result.Result<JsonObject, string> => {
  const loaded = Result.flatMap(
    Result.try({ try: () => load(yaml, { schema, maxAliases, maxDepth }), catch: firstLine }),
    toJson
  )
  if (Result.isFailure(loaded)) return Result.fail(`its frontmatter cannot be read: ${loaded.failure}`)
  return isObject(loaded.success) ? Result.succeed(loaded.success) : Result.fail("its frontmatter is not a mapping")
}

const withoutEmptyLines = (text: string): string => text.replace(/^(?:[ \t]*\r?\n)+/, "")

/**
 * Parses a `SKILL.md`. Fails with a line that says what is wrong: frontmatter that is missing, has more than `maxChars`
 * characters (65,536 by default) or is not YAML with the types of JSON, a `name` that the Agent Skills specification does not
 * allow, or no `description`. {@link formatProblem} checks the other rules of the specification.
 *
 * @example
 * const parsed = SkillMarkdown.parse(text)
 */
export const parse = (
  markdown: string,
  maxChars: number = maxFrontmatterChars
): Result.Result<SkillMarkdown, string> =>
  Result.flatMap(splitMarkdown(markdown, maxChars), ([yaml, rest]) =>
    Result.flatMap(loadYaml(yaml), (frontmatter) => {
      const problem = nameProblem(frontmatter["name"]) ?? descriptionProblem(frontmatter)
      return problem === undefined
        ? Result.succeed({ frontmatter: frontmatter as Frontmatter, instructions: withoutEmptyLines(rest) })
        : Result.fail(problem)
    }))

/** A `SKILL.md` that conforms to the Agent Skills specification, after a repair. */
export interface Repaired {
  /** The whole text: the given one if nothing had to be repaired. */
  readonly markdown: string
  readonly frontmatter: Frontmatter
  /** One line for each repair: empty if nothing had to be repaired. */
  readonly repairs: ReadonlyArray<string>
}

/**
 * Repairs the imperfections of a `SKILL.md` that other agents accept, so that it conforms to the Agent Skills specification.
 * `folder` is the name of its folder, which becomes the name of a skill that has none. Fails with a line that says what is
 * wrong if the frontmatter is missing or cannot be read, or has no `description`.
 *
 * @example
 * const { markdown, repairs } = Result.getOrThrow(SkillMarkdown.repair(text, "tidy"))
 */
export const repair = (markdown: string, folder: string): Result.Result<Repaired, string> =>
  Result.flatMap(splitMarkdown(markdown), ([yaml, rest]) => {
    const repairs: Array<string> = []
    let readable = yaml
    let loaded = loadYaml(yaml)
    if (Result.isFailure(loaded)) {
      const quoted = quoteEntries(yaml)
      const again = loadYaml(quoted.yaml)
      if (Result.isFailure(again)) return Result.fail(`${loaded.failure}: put values that contain ": " in quotes`)
      readable = quoted.yaml
      loaded = again
      repairs.push(`the text of ${quoted.keys.map((key) => quote(key)).join(" and ")} was put in quotes`)
    }
    const texts = Result.getOrElse(loadYaml(readable, FAILSAFE_SCHEMA), () => ({}))
    const fixed = repairMembers(loaded.success, texts, folder)
    if (Result.isFailure(fixed)) return Result.fail(fixed.failure)
    repairs.push(...fixed.success.repairs)
    const frontmatter = fixed.success.frontmatter as Frontmatter
    const problem = formatProblem(frontmatter)
    if (problem !== undefined) return Result.fail(problem)
    return Result.succeed({
      markdown: repairs.length === 0 ? markdown : write(frontmatter, withoutEmptyLines(rest)),
      frontmatter,
      repairs
    })
  })

/**
 * Puts the values of members that YAML cannot read in quotes, such as a text with a colon. Each member is read alone, so that
 * the others stay as they are.
 */
const quoteEntries = (yaml: string): { readonly yaml: string; readonly keys: ReadonlyArray<string> } => {
  const keys: Array<string> = []
  const entries = yaml.split(/^(?=[^\s#])/m).map((entry) => {
    const [, key = "", value = ""] = /^([\w-]+):[ \t]+([^\s|>][^]*)$/.exec(entry) ?? []
    if (key === "" || Result.isSuccess(loadYaml(entry))) return entry
    keys.push(key)
    return `${key}: ${yamlOf(value.trim().replace(/\s*\n\s*/g, " "))}\n`
  })
  return { yaml: entries.join(""), keys }
}

/** The text of a value of YAML: its own where it is a scalar, and JSON otherwise. */
const textOfMember = (value: unknown, text: unknown): string =>
  typeof value === "string" ? value : typeof text === "string" ? text : JSON.stringify(value)

const repairMembers = (
  given: JsonObject,
  texts: JsonObject,
  folder: string
): Result.Result<{ readonly frontmatter: JsonObject; readonly repairs: ReadonlyArray<string> }, string> => {
  const repairs: Array<string> = []
  const frontmatter: Record<string, unknown> = { ...given }
  const { compatibility, description, metadata, name } = given
  if (nameProblem(name) !== undefined) {
    const written = name === undefined || name === null ? "" : textOfMember(name, texts["name"])
    const used = [written, folder, slugOf(written), slugOf(folder)].find((name) => nameProblem(name) === undefined)
    if (used === undefined) return Result.fail(nameProblem(name)!)
    frontmatter["name"] = used
    repairs.push(written === "" ? `it has no name: ${used} is used` : `its name ${quote(written)} became ${used}`)
  }
  if (typeof description === "number" || typeof description === "boolean") {
    frontmatter["description"] = textOfMember(description, texts["description"])
  }
  const missing = descriptionProblem(frontmatter)
  if (missing !== undefined) return Result.fail(missing)
  const shortened = clip(frontmatter["description"] as string, maxDescriptionChars - 1)
  if (lengthOf(frontmatter["description"] as string) > maxDescriptionChars) {
    frontmatter["description"] = shortened
    repairs.push(`its description was cut to ${maxDescriptionChars} characters`)
  }
  if (compatibility !== undefined && compatibilityProblem(compatibility) !== undefined) {
    const text = Array.isArray(compatibility) ? compatibility.map(String).join(", ") : String(compatibility ?? "")
    if (text.trim() === "") delete frontmatter["compatibility"]
    else frontmatter["compatibility"] = clip(text, maxCompatibilityChars - 1)
    repairs.push(`its compatibility was made a text of 1 to ${maxCompatibilityChars} characters`)
  }
  if (metadata !== undefined && metadataProblem(metadata) !== undefined) {
    if (isObject(metadata)) {
      const written = texts["metadata"]
      frontmatter["metadata"] = Object.fromEntries(
        Object.entries(metadata).map(([key, value]) => [
          key,
          textOfMember(value, isObject(written) ? written[key] : undefined)
        ])
      )
      repairs.push("the values of its metadata were made texts")
    } else {
      delete frontmatter["metadata"]
      repairs.push("its metadata was left out, because it is not a mapping")
    }
  }
  return Result.succeed({ frontmatter: frontmatter as JsonObject, repairs })
}

/** A text as the name of a skill: in lower case, with a hyphen for each run of other characters. */
const slugOf = (text: string): string =>
  cut(cut(text.toLowerCase(), 256).replace(/[^a-z0-9]+/g, "-").replace(/^-/, ""), 64).replace(/-$/, "")

/**
 * Returns why a text is not the name of a skill, or `undefined`: 1 to 64 lowercase letters of ASCII, digits and hyphens,
 * without hyphens at the start or the end, or beside each other.
 *
 * @example
 * SkillMarkdown.nameProblem("refunds") // undefined
 */
export const nameProblem = (name: unknown): string | undefined =>
  typeof name === "string" && name.length <= 64 && /^[a-z0-9]+(?:-[a-z0-9]+)*$/.test(name)
    ? undefined
    : `its name ${
      typeof name === "string" ? `${quote(name)} ` : ""
    }must have 1 to 64 characters: a-z, 0-9 and single hyphens between them`

/** The number of characters, where a pair of surrogates is one. */
const lengthOf = (text: string): number => [...text].length

const maxDescriptionChars = 1024
const maxCompatibilityChars = 500

const descriptionProblem = ({ description }: JsonObject): string | undefined =>
  typeof description === "string" && description.trim() !== ""
    ? undefined
    : `its description must have 1 to ${maxDescriptionChars} characters`

const compatibilityProblem = (compatibility: unknown): string | undefined =>
  typeof compatibility === "string" && compatibility !== "" && lengthOf(compatibility) <= maxCompatibilityChars
    ? undefined
    : `its compatibility must have 1 to ${maxCompatibilityChars} characters`

const metadataProblem = (metadata: unknown): string | undefined => {
  if (!isObject(metadata)) return "its metadata must be a mapping of texts"
  const [key] = Object.entries(metadata).find(([, value]) => typeof value !== "string") ?? []
  return key === undefined
    ? undefined
    : `its metadata must be a mapping of texts: put the value of ${quote(key)} in quotes`
}

/**
 * Returns why a frontmatter that {@link parse} accepts violates the Agent Skills specification, to which a served skill must
 * conform (SEP-2640, skill format), or `undefined`. The client of SDK v2 rejects the whole list of a server if one frontmatter
 * does.
 *
 * @example
 * SkillMarkdown.formatProblem({ name: "refunds", description: "Refunds orders" }) // undefined
 */
export const formatProblem = (frontmatter: Frontmatter): string | undefined => {
  const { compatibility, description, metadata } = frontmatter
  if (lengthOf(description) > maxDescriptionChars) {
    return `its description must have 1 to ${maxDescriptionChars} characters`
  }
  return (compatibility === undefined ? undefined : compatibilityProblem(compatibility)) ??
    (metadata === undefined ? undefined : metadataProblem(metadata))
}

// Characters that YAML does not allow in a text, or reads as line breaks.
const special = /[\u007f-\u009f\u2028\u2029\ufeff]/g

/** The members of the specification, which need no quotes as keys. Another one may be a word with a meaning in YAML. */
const plainKeys: ReadonlySet<string> = new Set([
  "name",
  "description",
  "license",
  "compatibility",
  "metadata",
  "allowed-tools"
])

const yamlOf = (value: unknown): string =>
  Json.stringify(value)!.replace(special, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`)

/**
 * Writes a `SKILL.md`. Values are written in the notation of JSON, which is YAML too. Members that are `undefined` are
 * left out. {@link parse} returns the same frontmatter, with U+FFFD in the place of a surrogate without a partner.
 *
 * @example
 * SkillMarkdown.write({ name: "refunds", description: "Refunds orders" }, "Ask for the order first.")
 */
export const write = (frontmatter: JsonObject, instructions: string): string => {
  const lines = Object.entries(frontmatter).flatMap(([key, value]) =>
    value === undefined ? [] : [`${plainKeys.has(key) ? key : yamlOf(key)}: ${yamlOf(value)}`]
  )
  return `---\n${lines.join("\n")}\n---\n\n${instructions}${instructions.endsWith("\n") ? "" : "\n"}`
}

/**
 * Returns the names of the members in which two frontmatters differ, sorted.
 *
 * @example
 * SkillMarkdown.differences({ name: "a", license: "MIT" }, { name: "a" }) // ["license"]
 */
export const differences = (one: JsonObject, other: JsonObject): ReadonlyArray<string> =>
  [...new Set([...Object.keys(one), ...Object.keys(other)])]
    .filter((key) =>
      Object.hasOwn(one, key) !== Object.hasOwn(other, key) ||
      CanonicalJson.stringify(one[key]) !== CanonicalJson.stringify(other[key])
    )
    .sort()
