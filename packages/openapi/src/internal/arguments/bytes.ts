/**
 * Finds the parts of a body that are bytes. A model gives them as base64 text, and the request has the bytes.
 *
 * OpenAPI 3.0 writes `format: binary`. Since 3.1, bytes have no type, or a `contentMediaType`, or only a media type in
 * `encoding` ("Considerations for File Uploads"). A `contentEncoding` is part of the request, so that such text stays.
 */
import { isObject, type JsonObject } from "@skein/protocol/JsonRpc"
import type { Version } from "../document/pointer.ts"
import { find } from "../document/pointer.ts"
import type { Schema } from "../schema/convert.ts"
import { typesOf } from "../schema/keywords.ts"

/** The most levels of references, lists and alternatives around a file. */
const maxLevels = 8

const textual =
  /^application\/(?:.*\+)?(?:json|xml|x?-?yaml|javascript|ecmascript|sql|graphql|x-www-form-urlencoded|jsonl|jsonlines|json-seq|x-ndjson|\*)\s*(?:;|$)/i

/** Whether a media type, or a range such as `image/*`, is one of bytes. */
const isBinary = (mediaType: string): boolean =>
  (/^(?:image|audio|video|font|model)\//i.test(mediaType) && !/\+(?:xml|json)\b/i.test(mediaType)) ||
  (/^application\//i.test(mediaType) && !textual.test(mediaType))

/** The keywords that make a schema one of JSON values. */
const values = [
  ...[
    "type",
    "format",
    "enum",
    "const",
    "properties",
    "additionalProperties",
    "items",
    "prefixItems",
    "allOf",
    "anyOf"
  ],
  ...["oneOf", "not", "pattern", "required"]
]

const isNull = (node: unknown): boolean => isObject(node) && node["type"] === "null"

/**
 * Whether a value of a schema, or each of its items, is sent as bytes. `contentType` is the media type of the part, if
 * the document has one.
 */
export const areBytes = (
  root: JsonObject,
  version: Version,
  node: unknown,
  contentType: string | undefined,
  level = 0
): boolean => {
  if (node === undefined) return areBytes(root, version, {}, contentType, level)
  if (!isObject(node) || level > maxLevels) return false
  const within = (child: unknown): boolean => areBytes(root, version, child, contentType, level + 1)
  const { $ref, ...beside } = node
  if (typeof $ref === "string") {
    const target = find(root, $ref)
    return within(version === "3.0" || !isObject(target) ? target : { ...target, ...beside })
  }
  const { allOf, anyOf, contentEncoding, contentMediaType, format, items, oneOf, type } = node
  if (type === "file" || format === "binary" || format === "byte") return true
  if (typeof contentEncoding === "string") return false
  const types = typesOf(node).filter((each) => each !== "null")
  if (types.length === 1 && types[0] === "array") return isObject(items) && within(items)
  if (types.some((each) => each !== "string")) return false
  for (const members of [anyOf, oneOf, allOf]) {
    const others = Array.isArray(members) ? members.filter((member) => !isNull(member)) : []
    if (others.length > 0) return others.every(within)
  }
  if (typeof contentMediaType === "string") return isBinary(contentMediaType)
  if (values.some((key) => key !== "type" && key in node)) return false
  if (contentType !== undefined) return isBinary(contentType)
  // "The default Content-Type of a property without a type is application/octet-stream" (OpenAPI 3.1, "Encoding").
  return version !== "3.0" && types.length === 0
}

/** Describes bytes to a model: as base64 text. Lengths and patterns of the document are those of the bytes. */
export const asBase64 = (schema: Schema): Schema => {
  if (!isObject(schema)) return { type: "string", contentEncoding: "base64" }
  if (isNull(schema)) return schema
  const { format: _, maxLength: __, minLength: ___, pattern: ____, ...rest } = schema
  for (const key of ["anyOf", "allOf"]) {
    const members = rest[key]
    if (Array.isArray(members)) return { ...rest, [key]: members.map(asBase64) }
  }
  if (isObject(rest["items"])) return { ...rest, items: asBase64(rest["items"]) }
  const isTyped = "type" in rest || "$ref" in rest
  return { ...(isTyped ? undefined : { type: "string" }), ...rest, contentEncoding: "base64" }
}
