/**
 * Reads the request body of an operation: its media type, and the fields that become arguments.
 */
import { isObject, type JsonObject } from "@skein/protocol/JsonRpc"
import { clip } from "@skein/protocol/Text"
import * as Result from "effect/Result"
import { InvalidOperation, OpenApiError } from "../../OpenApiError.ts"
import type { Style } from "./serialize.ts"
import { withDescription } from "../document/operations.ts"
import type { Version } from "../document/pointer.ts"
import { find, objectAt, resolve } from "../document/pointer.ts"
import type { Schema, Schemas } from "../schema/convert.ts"
import { annotationsOf, requiredOf, schemasByName } from "../schema/keywords.ts"
import { areBytes, asBase64 } from "./bytes.ts"

/** How a body is written. */
export type BodyKind = "json" | "form" | "multipart" | "text" | "bytes"

/** A member of the body that is an argument of its own. */
export interface Field {
  readonly key: string
  readonly schema: Schema
  readonly isRequired: boolean
  /** Whether the value, or each item of it, is base64 text of bytes that are sent as they are. */
  readonly isBytes: boolean
  readonly style?: Style
  readonly explode?: boolean
  readonly allowReserved?: boolean
}

/** The body of an operation. */
export interface Body {
  readonly kind: BodyKind
  readonly mediaType: string
  readonly isRequired: boolean
  /** The schema of the whole body, if it is one argument. */
  readonly schema: Schema
  /** The members of the body as arguments; `undefined` if the whole body is one argument. */
  readonly fields: ReadonlyArray<Field> | undefined
  /** The schema of members that have no name in the document; `undefined` if there are none. */
  readonly extra: Schema | undefined
  /** The media types of the parts of a multipart body, by the names of their fields. */
  readonly contentTypes: ReadonlyMap<string, string>
  /** The members of a multipart body that are bytes, if the whole body is one argument. */
  readonly byteKeys: ReadonlySet<string>
  /** The sets of members of which a call needs one. */
  readonly choices: ReadonlyArray<Choice>
  /** Sentences about the number of members of an object whose members are arguments. */
  readonly counts: ReadonlyArray<string>
}

/** Sets of members, of which an object needs at least one, or exactly one. */
export interface Choice {
  readonly isExclusive: boolean
  readonly sets: ReadonlyArray<ReadonlyArray<string>>
}

const kinds: ReadonlyArray<readonly [RegExp, BodyKind]> = [
  [/^application\/json\s*(?:;|$)/, "json"],
  [/^[\w.-]+\/[\w.-]+\+json\b/, "json"],
  [/^application\/x-www-form-urlencoded\b/, "form"],
  [/^multipart\/form-data\b/, "multipart"],
  [/^\*\/\*|^application\/\*/, "json"],
  [/^text\/|\bxml\b|\byaml\b|\bgraphql\b|\b(?:nd|geo)?json(?:l|lines|-seq)?\b/, "text"],
  [/^(?!multipart\/).*\//, "bytes"],
  // Not a media type: a mistake of the document, nearly always in place of JSON.
  [/^[^/]*$/, "json"]
]

/** Whether a key of `content` is a media type or a range of them. */
export const isMediaType = (key: string): boolean => key.includes("/")

/** Chooses the media type that is written best. */
export const choose = (content: JsonObject): { readonly key: string; readonly kind: BodyKind } | undefined => {
  const mediaTypes = Object.keys(content)
  for (const [pattern, kind] of kinds) {
    const key = mediaTypes.find((mediaType) => pattern.test(mediaType.toLowerCase()))
    if (key !== undefined) return { key, kind }
  }
  return undefined
}

/** The most levels of `allOf` and of references whose properties are merged. */
const maxLevels = 16

interface Members {
  readonly properties: Map<string, unknown>
  readonly required: Set<string>
  readonly choices: Array<Choice>
  readonly counts: Array<string>
  extra: unknown
}

/** Whether a schema only lists alternatives of required members, as in `anyOf: [{ required: ["a"] }, …]`. */
const isOnlyRequired = (members: unknown): boolean =>
  Array.isArray(members) &&
  members.every((member) => isObject(member) && Object.keys(member).every((key) => key === "required"))

/** Keywords about an object as a whole, which would be lost if its members were arguments of their own. */
const onWholes = [
  ...["not", "if", "patternProperties", "propertyNames", "unevaluatedProperties", "dependentRequired"],
  ...["dependentSchemas", "dependencies"]
]

/** Adds a property. One that several members of `allOf` declare has the schemas of all. */
const addProperty = ({ properties }: Members, name: string, property: unknown): void => {
  const known = properties.get(name)
  const isSame = known === undefined || JSON.stringify(known) === JSON.stringify(property)
  properties.set(name, isSame ? property : { allOf: [known, property] })
}

/** Collects the members of an object. Returns `false` if they cannot be arguments of their own. */
const collect = (root: JsonObject, schemas: Schemas, schema: unknown, into: Members, level = 0): boolean => {
  if (!isObject(schema) || level > maxLevels) return false
  const { $ref, ...beside } = schema
  if (typeof $ref === "string") {
    const isAlone = schemas.version === "3.0" ||
      Object.keys(beside).length === Object.keys(annotationsOf(beside)).length
    return collect(root, schemas, find(root, $ref), into, level + 1) &&
      (isAlone || collect(root, schemas, beside, into, level + 1))
  }
  const { additionalProperties: extra, allOf, anyOf, oneOf, type } = schema
  if (type !== undefined && type !== "object") return false
  if ([anyOf, oneOf].some((members) => members !== undefined && !isOnlyRequired(members))) return false
  if (onWholes.some((key) => key in schema)) return false
  for (const [members, isExclusive] of [[anyOf, false], [oneOf, true]] as const) {
    const sets = (Array.isArray(members) ? members : []).map((member) => requiredOf(member as JsonObject))
    if (sets.length > 0 && sets.every((set) => set.length > 0)) into.choices.push({ isExclusive, sets })
  }
  for (const [key, bound] of [["minProperties", "at least"], ["maxProperties", "at most"]] as const) {
    const count = schema[key]
    if (typeof count === "number" && count > 0) into.counts.push(`Give ${bound} ${count} of the members of the body.`)
  }
  if (extra !== undefined && extra !== false) into.extra = extra
  const hidden = new Set(schemas.hiddenNames(schema))
  for (const [name, property] of schemasByName(schema["properties"])) {
    if (!schemas.isHidden(property)) addProperty(into, name, property)
  }
  for (const name of requiredOf(schema)) if (!hidden.has(name)) into.required.add(name)
  return !Array.isArray(allOf) || allOf.every((member) => collect(root, schemas, member, into, level + 1))
}

/** The longest example, as JSON text. */
const maxExampleChars = 200

const isShort = (example: unknown): boolean =>
  example !== undefined && JSON.stringify(example).length <= maxExampleChars

/** The example of a parameter or of a body: `example`, or the first of `examples`. A long one is left out, unless `isWhole`. */
export const exampleOf = (
  root: JsonObject,
  { example, examples }: JsonObject,
  isWhole = false
): unknown => {
  // A broken reference to an example takes no operation.
  const named = Object.values(isObject(examples) ? examples : {}).map((each) =>
    Result.getOrElse(Result.try(() => objectAt(root, each)), (): JsonObject => ({}))
  )
  const found = [example, ...named.flatMap(({ dataValue, value }) => [dataValue, value])]
    .find((each) => each !== undefined)
  return found !== undefined && (isWhole || isShort(found)) ? found : undefined
}

/** Adds an example to a schema that has none. */
export const withExample = (schema: Schema, example: unknown): Schema =>
  isObject(schema) && example !== undefined && schema["examples"] === undefined
    ? { ...schema, examples: [example] }
    : schema

const styles: ReadonlySet<unknown> = new Set(["form", "spaceDelimited", "pipeDelimited", "deepObject"])

const fieldsOf = (
  root: JsonObject,
  schemas: Schemas,
  media: JsonObject,
  isRequired: boolean,
  isMultipart: boolean
): Pick<Body, "fields" | "extra" | "choices" | "counts"> => {
  const none = { fields: undefined, extra: undefined, choices: [], counts: [] }
  const members: Members = { properties: new Map(), required: new Set(), choices: [], counts: [], extra: undefined }
  if (!collect(root, schemas, media["schema"], members) || members.properties.size === 0) return none
  const contentTypes = contentTypesOf(media)
  const examples = exampleOf(root, media, true)
  const fields = [...members.properties].map(([key, property]): Field => {
    const encoding = isObject(media["encoding"]) ? media["encoding"][key] : undefined
    const { allowReserved, explode, style } = isObject(encoding) ? encoding : {}
    const isBytes = isMultipart && areBytes(root, schemas.version, property, contentTypes.get(key))
    const example = isObject(examples) && Object.hasOwn(examples, key) ? examples[key] : undefined
    const schema = withExample(schemas.convert(property), isShort(example) ? example : undefined)
    return {
      key,
      schema: isBytes ? asBase64(schema) : schema,
      isBytes,
      isRequired: isRequired && members.required.has(key),
      ...(styles.has(style) ? { style: style as Style } : undefined),
      ...(typeof explode === "boolean" ? { explode } : undefined),
      ...(allowReserved === true ? { allowReserved } : undefined)
    }
  })
  const extra = members.extra === undefined ? undefined : schemas.convert(members.extra)
  return { fields, extra, choices: members.choices, counts: members.counts }
}

/** The media types of parts. Of several that the API accepts, the first; a range such as `image/*` stays. */
const contentTypesOf = ({ encoding }: JsonObject): ReadonlyMap<string, string> =>
  new Map(
    schemasByName(encoding).flatMap(([name, each]) => {
      const type = isObject(each) ? each["contentType"] : undefined
      return typeof type === "string" ? [[name, type.split(",")[0]!.trim()] as const] : []
    })
  )

/** The media type of a body whose key in the document is a range, or no media type. */
const concrete = (key: string, kind: BodyKind): string =>
  isMediaType(key) && !key.includes("*")
    ? key
    : kind === "json"
    ? "application/json"
    : kind === "text"
    ? "text/plain"
    : "application/octet-stream"

/**
 * Reads the body of an operation, whose place is for messages. Throws `OpenApiError` for a broken reference, and if no
 * media type of the body can be written.
 */
export const bodyOf = (schemas: Schemas, root: JsonObject, node: unknown, place: string): Body | undefined => {
  const request = withDescription(schemas.version, node, objectAt(root, node)) as JsonObject
  const content = isObject(request["content"]) ? request["content"] : {}
  const chosen = choose(content)
  if (chosen === undefined) {
    const [mediaType] = Object.keys(content)
    if (mediaType === undefined) return undefined
    const message = `Its body is ${clip(mediaType)}, which cannot be written from arguments`
    throw new OpenApiError({ reason: new InvalidOperation({ message, place }) })
  }
  const { key } = chosen
  const media = objectAt(root, content[key])
  const isAnyBytes = key.includes("*") && areBytes(root, "3.0", media["schema"], undefined)
  const kind = isAnyBytes ? "bytes" : chosen.kind
  const mediaType = concrete(key, kind)
  const isRequired = request["required"] === true
  const isObjectBody = kind === "json" || kind === "form" || kind === "multipart"
  const { choices, counts, extra, fields } = isObjectBody
    ? fieldsOf(root, schemas, media, isRequired, kind === "multipart")
    : { extra: undefined, fields: undefined, choices: [], counts: [] }
  const { description } = request
  const byteKeys = kind === "multipart" && fields === undefined
    ? byteKeysOf(root, schemas.version, media)
    : new Set<string>()
  const base64 = byteKeys.size === 0 ? "" : `. Give ${clip([...byteKeys].join(", "), 300)} as base64`
  const about = typeof description === "string" ? clip(description, 300) : `The body of the request, ${mediaType}`
  const text = about + base64
  return {
    kind,
    mediaType,
    isRequired,
    schema: fields === undefined
      ? withExample(wholeBody(kind, schemas.convert(media["schema"]), text), exampleOf(root, media))
      : {},
    fields,
    extra,
    contentTypes: contentTypesOf(media),
    byteKeys,
    choices,
    counts
  }
}

/** The properties of a multipart body that are bytes, also in alternatives. */
const byteKeysOf = (root: JsonObject, version: Version, media: JsonObject): ReadonlySet<string> => {
  const contentTypes = contentTypesOf(media)
  const keys = new Set<string>()
  const seen = new Set<unknown>()
  const visit = (node: unknown, level: number): void => {
    const schema = resolve(root, node)
    if (!isObject(schema) || seen.has(schema) || level > maxLevels) return
    seen.add(schema)
    for (const [key, property] of schemasByName(schema["properties"])) {
      if (areBytes(root, version, property, contentTypes.get(key))) keys.add(key)
    }
    for (const members of [schema["allOf"], schema["anyOf"], schema["oneOf"]]) {
      if (Array.isArray(members)) { for (const member of members) visit(member, level + 1) }
    }
  }
  visit(media["schema"], 0)
  return keys
}

const wholeBody = (kind: BodyKind, schema: Schema, text: string): Schema => {
  if (kind === "text") return { type: "string", description: text }
  if (kind === "bytes") return { type: "string", contentEncoding: "base64", description: `${text}, as base64` }
  if (!isObject(schema)) return { description: text }
  return schema["description"] === undefined || text.endsWith(" as base64")
    ? { ...schema, description: text }
    : schema
}
