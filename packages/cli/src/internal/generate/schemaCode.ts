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

/** Sorts definitions so that each follows those that it uses when it is evaluated. Recursion is suspended. */
const inOrder = (definitions: SchemaCode["definitions"]): SchemaCode["definitions"] => {
  const byName = new Map(definitions.map((definition) => [definition.name, definition]))
  const sorted = new Set<SchemaCode["definitions"][number]>()
  const visit = (definition: SchemaCode["definitions"][number], above: ReadonlySet<string>): void => {
    if (sorted.has(definition) || above.has(definition.name)) return
    const evaluated = definition.code.replaceAll(/"(?:[^"\\]|\\.)*"/g, "")
      .replaceAll(/Schema\.suspend\(\(\): Schema\.Codec<\w+> => \w+\)/g, "")
    for (const word of evaluated.match(/\w+/g) ?? []) {
      const used = byName.get(word)
      if (used !== undefined) visit(used, new Set([...above, definition.name]))
    }
    sorted.add(definition)
  }
  for (const definition of definitions) visit(definition, new Set())
  return [...sorted]
}

/** Replaces each member that cannot be imported by any JSON value. */
const relaxed = (schema: JsonObject): JsonObject => {
  const { $defs, properties, ...rest } = schema
  if (!isObject(properties)) return schema
  const entries = Object.entries(properties).map(([name, property]) => {
    const alone = { type: "object", properties: { [name]: property }, ...$defs === undefined ? undefined : { $defs } }
    return [name, Result.isSuccess(attempt(alone)) ? property : {}] as const
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
