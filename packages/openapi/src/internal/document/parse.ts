/**
 * Parses the text of a document: JSON or YAML.
 *
 * YAML is read with the types of JSON, so that a date stays a text. Anchors and merge keys work. Their use is bounded,
 * because a few lines with nested aliases stand for billions of values.
 */
import { isObject, type JsonObject } from "@skein/protocol/JsonRpc"
import * as Nesting from "@skein/protocol/Nesting"
import { clip } from "@skein/protocol/Text"
import * as Result from "effect/Result"
import { CORE_SCHEMA, load, mergeTag } from "js-yaml"
import { OpenApiError, ParseFailed } from "../../OpenApiError.ts"

const maxAliases = 10_000
const maxDepth = 500

/** The most values of a document, where the target of an alias counts each time. */
const maxValues = 10_000_000

const schema = /* @__PURE__ */ CORE_SCHEMA.withTags(mergeTag)

const read = (text: string): unknown => {
  if (/^\s*[{[]/.test(text)) {
    try {
      return JSON.parse(text)
    } catch {
      // YAML in the flow style begins in the same way.
    }
  }
  return load(text, { schema, json: true, maxAliases, maxDepth })
}

/** Whether a tree has at most `most` values and levels of a document. */
const isBounded = (root: unknown): boolean => {
  const left: Array<readonly [unknown, number]> = [[root, 0]]
  let count = 0
  for (let next = left.pop(); next !== undefined; next = left.pop()) {
    const [value, depth] = next
    if (++count > maxValues || depth > maxDepth) return false
    if (typeof value !== "object" || value === null) continue
    for (const child of Object.values(value)) left.push([child, depth + 1])
  }
  return true
}

const firstLine = (error: unknown): string =>
  Nesting.exceedsStack(error)
    ? `it ${Nesting.problem}`
    : clip((error instanceof Error ? error.message : String(error)).split("\n")[0] ?? "", 300)

/** Parses a document. Fails with `ParseFailed`. */
export const parse = (text: string, url: URL | undefined): Result.Result<JsonObject, OpenApiError> => {
  const name = url === undefined ? "the document" : `the document ${url.href}`
  const failed = (why: string) =>
    Result.fail(
      new OpenApiError({ reason: new ParseFailed({ message: `Cannot parse ${name}: ${why}`, url: url?.href }) })
    )
  const parsed = Result.try({ try: () => read(text.replace(/^\ufeff/, "")), catch: firstLine })
  if (Result.isFailure(parsed)) return failed(parsed.failure)
  if (!isObject(parsed.success)) return failed("it is not an object")
  return isBounded(parsed.success)
    ? Result.succeed(parsed.success)
    : failed(`it has more than ${maxValues} values or ${maxDepth} levels`)
}
