/**
 * Converts the JSON Schemas of a server to code for Effect Schemas, with the importer of `effect/SchemaRepresentation`.
 *
 * The importer refuses what Effect has no equivalent for. Such constraints are left out before: the generated schema then
 * accepts more values, and the server validates arguments itself. Regular expressions are left out too, because those of a
 * server can take exponential time. A part that is refused nevertheless becomes any JSON value.
 */
import { isObject, type JsonObject } from "@skein/protocol/JsonRpc"
import { clip } from "@skein/protocol/Text"
import * as JsonSchema from "effect/JsonSchema"
import * as Result from "effect/Result"
import * as SchemaRepresentation from "effect/SchemaRepresentation"
import { type Names, pascal } from "./names.ts"

/** The code of one schema. */
export interface SchemaCode {
  /** The definitions that it refers to, in order. A recursive one has a type. */
  readonly definitions: ReadonlyArray<
    { readonly name: string; readonly code: string; readonly type: string | undefined }
  >
  readonly code: string
  /** Whether a part of the schema became any JSON value. */
  readonly isPartial: boolean
}

/** How many characters, and levels, a schema has at most. A larger one becomes any JSON value. */
export const maxSchemaChars = 262_144
const maxDepth = 64

// How many characters are imported to find the members of a schema that are refused, in addition to four times its own.
// Definitions count with each member that uses them. The members that are left then become any JSON value.
const minAttemptedChars = 16_384

const maxDescription = 500

const mapsOfSchemas: ReadonlySet<string> = new Set(["properties", "$defs", "definitions"])
const listsOfSchemas: ReadonlySet<string> = new Set(["anyOf", "oneOf", "allOf", "prefixItems"])

/** The other keywords that are kept. Their values are not schemas. */
const kept: ReadonlySet<string> = new Set([
  "type",
  "required",
  "minimum",
  "maximum",
  "exclusiveMinimum",
  "exclusiveMaximum",
  "multipleOf",
  "minLength",
  "maxLength",
  "minItems",
  "maxItems",
  "uniqueItems",
  "minProperties",
  "maxProperties",
  "nullable"
])

const isPrimitive = (value: unknown): boolean => typeof value !== "object" || value === null

const hasTypedRest = ({ additionalProperties, properties }: JsonObject): boolean =>
  isObject(properties) && Object.keys(properties).length > 0 && isObject(additionalProperties) &&
  Object.keys(additionalProperties).length > 0

interface Preparing {
  /** Whether objects with known members get no others, so that a misspelt name is a type error. */
  readonly closes: boolean
  /** Whether that includes objects that allow any further members explicitly, as servers do that ignore them. */
  readonly closesOpen: boolean
  /** The new name of a definition. */
  readonly rename: (key: string) => string
}

/** Copies a schema without the keywords that the importer refuses. */
const prepare = (schema: unknown, preparing: Preparing, depth = 0): unknown => {
  if (depth > maxDepth) throw new RangeError(`it has more than ${maxDepth} levels`)
  if (typeof schema === "boolean") return schema
  if (!isObject(schema)) return {}
  const deeper = (value: unknown, more = preparing) => prepare(value, more, depth + 1)
  const copy: Record<string, unknown> = {}
  for (const [key, value] of Object.entries(schema)) {
    if (mapsOfSchemas.has(key) && isObject(value)) {
      copy[key] = Object.fromEntries(
        Object.entries(value).map(([name, inner]) => [
          key === "properties" ? name : preparing.rename(name),
          deeper(inner)
        ])
      )
    } else if (listsOfSchemas.has(key) && Array.isArray(value)) {
      // Members of an intersection must allow each other's members.
      const inner = key === "allOf" ? { ...preparing, closes: false } : preparing
      copy[key === "oneOf" ? "anyOf" : key] = value.map((each) => deeper(each, inner))
    } else if (key === "items" && Array.isArray(value)) copy["prefixItems"] = value.map((each) => deeper(each))
    else if (key === "items" || key === "additionalItems") copy["items"] = deeper(value)
    else if (key === "additionalProperties") {
      if (!hasTypedRest(schema)) copy[key] = deeper(value)
    } else if (key === "$ref" && typeof value === "string") {
      const [, target = "", rest = ""] = /^#\/(?:\$defs|definitions)\/([^/]+)(.*)$/s.exec(value) ?? []
      copy[key] = target === "" ? value : `#/$defs/${preparing.rename(unescapePointer(target))}${rest}`
    } else if (
      key === "const"
        ? isPrimitive(value)
        : key === "enum" && Array.isArray(value) && value.every(isPrimitive)
    ) {
      copy[key] = value
    } else if (key === "description" && typeof value === "string") copy[key] = clip(value.trim(), maxDescription)
    else if (kept.has(key)) copy[key] = value
  }
  if (copy["definitions"] !== undefined) {
    copy["$defs"] = { ...copy["definitions"] as object, ...copy["$defs"] as object | undefined }
    delete copy["definitions"]
  }
  const isClosable = isObject(copy["properties"]) && Object.keys(copy["properties"]).length > 0 &&
    (schema["additionalProperties"] === undefined ||
      (preparing.closesOpen && schema["additionalProperties"] === true)) &&
    schema["patternProperties"] === undefined &&
    ["anyOf", "allOf", "$ref"].every((key) => copy[key] === undefined)
  return preparing.closes && isClosable ? { ...copy, additionalProperties: false } : copy
}

const unescapePointer = (token: string): string => {
  try {
    return decodeURIComponent(token).replaceAll("~1", "/").replaceAll("~0", "~")
  } catch {
    return token
  }
}

const importSchema = (schema: JsonObject): SchemaRepresentation.CodeDocument => {
  const document = JsonSchema.fromSchemaDraft2020_12(schema as JsonSchema.JsonSchema)
  const imported = SchemaRepresentation.fromJsonSchemaDocument(document, { patterns: "ignore" })
  return SchemaRepresentation.toCodeDocument(SchemaRepresentation.toRepresentations([imported.ast]))
}

const attempt = (schema: JsonObject): Result.Result<SchemaRepresentation.CodeDocument, unknown> =>
  Result.flatMap(
    Result.try({ try: () => importSchema(schema), catch: (error) => error }),
    // Schemas of JSON need no imports and no symbols.
    (document) => document.artifacts.length === 0 ? Result.succeed(document) : Result.fail("artifacts")
  )

/** The names of the definitions that the code of a definition evaluates. Recursion is suspended. */
const evaluatedIn = ({ code }: SchemaCode["definitions"][number]): Iterator<string> => {
  const evaluated = code.replaceAll(/"(?:[^"\\]|\\.)*"/g, "")
    .replaceAll(/Schema\.suspend\(\(\): Schema\.Codec<\w+> => \w+\)/g, "")
  return (evaluated.match(/\w+/g) ?? []).values()
}

/** Sorts definitions so that each follows those that it uses when it is evaluated. */
const inOrder = (definitions: SchemaCode["definitions"]): SchemaCode["definitions"] => {
  const byName = new Map(definitions.map((definition) => [definition.name, definition]))
  const sorted = new Set<SchemaCode["definitions"][number]>()
  const entered = new Set<SchemaCode["definitions"][number]>()
  // Without recursion: a chain of definitions can be deeper than the stack.
  const open: Array<{ readonly definition: SchemaCode["definitions"][number]; readonly words: Iterator<string> }> = []
  const enter = (definition: SchemaCode["definitions"][number]): void => {
    if (entered.has(definition)) return
    entered.add(definition)
    open.push({ definition, words: evaluatedIn(definition) })
  }
  for (const first of definitions) {
    enter(first)
    for (let top = open.at(-1); top !== undefined; top = open.at(-1)) {
      const { done, value } = top.words.next()
      if (done === true) {
        sorted.add(top.definition)
        open.pop()
        continue
      }
      const used = byName.get(value)
      if (used !== undefined) enter(used)
    }
  }
  return [...sorted]
}

/** The size of a part of a prepared schema, and the definitions that it refers to itself. */
const partOf = (schema: unknown) => {
  const text = JSON.stringify(schema)
  const uses = Array.from(text.matchAll(/"\$ref":"#\/\$defs\/([^"/]+)/g), ([, name]) => name!)
  return { schema, chars: text.length, uses }
}

/** Replaces each member that cannot be imported by any JSON value. */
const relaxed = (schema: JsonObject): JsonObject => {
  const { $defs, properties, ...rest } = schema
  if (!isObject(properties)) return schema
  const definitions = new Map(
    Object.entries(isObject($defs) ? $defs : {}).map(([name, definition]) => [name, partOf(definition)])
  )
  let left = 4 * sizeOf(schema) + minAttemptedChars
  /** The member with the definitions that it needs, or `undefined` if they have too many characters. */
  const alone = (name: string, property: unknown): JsonObject | undefined => {
    const { chars, uses } = partOf(property)
    const used = new Map<string, unknown>()
    left -= chars
    for (let next = uses.pop(); next !== undefined && left > 0; next = uses.pop()) {
      const definition = used.has(next) ? undefined : definitions.get(next)
      if (definition === undefined) continue
      used.set(next, definition.schema)
      left -= definition.chars
      for (const deeper of definition.uses) uses.push(deeper)
    }
    if (left <= 0) return undefined
    const defs = used.size === 0 ? undefined : { $defs: Object.fromEntries(used) }
    return { type: "object", properties: { [name]: property }, ...defs }
  }
  const entries = Object.entries(properties).map(([name, property]) => {
    const attempted = left > 0 ? alone(name, property) : undefined
    const isImported = attempted !== undefined && Result.isSuccess(attempt(attempted))
    return [name, isImported ? property : {}] as const
  })
  return { ...rest, ...$defs === undefined ? undefined : { $defs }, properties: Object.fromEntries(entries) }
}

const sizeOf = (schema: unknown): number => {
  try {
    return JSON.stringify(schema).length
  } catch {
    return Infinity
  }
}

const joins = (schema: JsonObject): boolean => /"(?:anyOf|oneOf|allOf|if)":/.test(JSON.stringify(schema))

/**
 * Returns the code of a schema. `owner` begins the names of its definitions. Arguments are objects without further
 * members. A result keeps its further members where it has alternatives, of which one could lose them.
 */
export const schemaCode = (
  schema: JsonObject,
  kind: "arguments" | "result",
  owner: string,
  names: Names
): SchemaCode => {
  const otherwise: JsonObject = kind === "arguments" ? { type: "object" } : {}
  const renamed = new Map<string, string>()
  const rename = (key: string): string => {
    const known = renamed.get(key) ?? names.take(owner + pascal(key, "Definition"))
    renamed.set(key, known)
    return known
  }
  const isSmall = sizeOf(schema) <= maxSchemaChars
  const prepared = isSmall
    ? Result.try(() =>
      prepare(schema, {
        closes: kind === "arguments" || !joins(schema),
        closesOpen: kind === "arguments",
        rename
      }) as JsonObject
    )
    : Result.fail("too large")
  const exact = Result.flatMap(prepared, attempt)
  const loose = Result.isSuccess(exact) ? exact : Result.flatMap(prepared, (whole) => attempt(relaxed(whole)))
  const { codes: [root], references } = Result.isSuccess(loose) ? loose.success : importSchema(otherwise)
  return {
    definitions: inOrder([
      ...references.nonRecursives.map(({ $ref, code }) => ({ name: $ref, code: code.runtime, type: undefined })),
      ...Object.entries(references.recursives).map(([name, { Type, runtime }]) => ({ name, code: runtime, type: Type }))
    ]),
    code: root!.runtime,
    isPartial: Result.isFailure(exact)
  }
}
