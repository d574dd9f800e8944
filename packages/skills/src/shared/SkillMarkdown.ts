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
import { CORE_SCHEMA, load } from "js-yaml"
import * as CanonicalJson from "@skein/protocol/CanonicalJson"
import { isObject, type JsonObject } from "@skein/protocol/JsonRpc"
import * as Nesting from "@skein/protocol/Nesting"
import type { Frontmatter } from "./SkillMessage.ts"
import { clip, quote } from "@skein/protocol/Text"

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

/**
 * Parses a `SKILL.md`. Fails with a line that says what is wrong: frontmatter that is missing, has more than `maxChars`
 * characters (65,536 by default) or is not YAML with the types of JSON, or a `name` or `description` that the Agent
 * Skills specification does not allow.
 *
 * @example
 * const parsed = SkillMarkdown.parse(text)
 */
export const parse = (
  markdown: string,
  maxChars: number = maxFrontmatterChars
): Result.Result<SkillMarkdown, string> => {
  const parts = split(markdown)
  if (parts === undefined) return Result.fail("it does not begin with frontmatter between two lines of ---")
  const [yaml, rest] = parts
  if (yaml.length > maxChars) {
    return Result.fail(`its frontmatter has ${yaml.length} characters, more than ${maxChars}`)
  }
  const loaded = Result.flatMap(
    Result.try({ try: () => load(yaml, { schema: CORE_SCHEMA, maxAliases, maxDepth }), catch: firstLine }),
    toJson
  )
  if (Result.isFailure(loaded)) return Result.fail(`its frontmatter cannot be read: ${loaded.failure}`)
  const frontmatter = loaded.success
  if (!isObject(frontmatter)) return Result.fail("its frontmatter is not a mapping")
  const problem = frontmatterProblem(frontmatter)
  return problem === undefined
    ? Result.succeed({ frontmatter: frontmatter as Frontmatter, instructions: rest.replace(/^(?:[ \t]*\r?\n)+/, "") })
    : Result.fail(problem)
}

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

const frontmatterProblem = ({ compatibility, description, name }: JsonObject): string | undefined => {
  const problem = nameProblem(name)
  if (problem !== undefined) return problem
  if (typeof description !== "string" || description.trim() === "" || lengthOf(description) > 1024) {
    return "its description must have 1 to 1024 characters"
  }
  if (compatibility !== undefined && (typeof compatibility !== "string" || lengthOf(compatibility) > 500)) {
    return "its compatibility must have at most 500 characters"
  }
  return undefined
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
  JSON.stringify(value).replace(special, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`)

/**
 * Writes a `SKILL.md`. Values are written in the notation of JSON, which is YAML too. Members that are `undefined` are
 * left out. {@link parse} returns the same frontmatter.
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
