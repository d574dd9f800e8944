/**
 * Merges the parameters and the body of an operation into one flat object of arguments.
 */
import { isObject, type JsonObject } from "@skein/protocol/JsonRpc"
import { clip } from "@skein/protocol/Text"
import { type Body, bodyOf, exampleOf, withExample } from "./body.ts"
import type { Found } from "../document/operations.ts"
import { objectAt } from "../document/pointer.ts"
import { reservedHeaders, type Serialization, type Style } from "./serialize.ts"
import { Names, toName } from "../document/names.ts"
import type { Schema, Schemas } from "../schema/convert.ts"
import { maxDescriptionChars } from "../schema/keywords.ts"

/** The place of an argument in the request. */
export type Place = "path" | "query" | "querystring" | "header" | "cookie" | "body"

/** An argument of a tool, with its place in the request. */
export interface Argument extends Serialization {
  /** The name for the model. */
  readonly name: string
  readonly place: Place
  readonly schema: Schema
  readonly isRequired: boolean
  /** The media type of the value, for a parameter with `content`. */
  readonly mediaType: string | undefined
  /** Whether the value, or each item of it, is base64 text of bytes that are sent as they are. */
  readonly isBytes: boolean
}

/** The arguments of an operation. */
export interface Arguments {
  readonly list: ReadonlyArray<Argument>
  readonly body: Body | undefined
  /** The schema of further arguments, which become members of the body. */
  readonly extra: Schema | undefined
  /** A note for the model about arguments that belong together. */
  readonly note: string | undefined
}

/** The places of parameters. */
export const places: ReadonlySet<unknown> = new Set(["path", "query", "querystring", "header", "cookie"])

// `reservedHeaders` has those that OpenAPI tells to ignore, too ("Parameter Object", `name`).
const ignoredHeaders: ReadonlySet<string> = new Set([...reservedHeaders, "keep-alive", "te", "trailer"])

const styles: Readonly<Record<Exclude<Place, "body">, ReadonlyArray<Style>>> = {
  querystring: ["form"],
  path: ["simple", "label", "matrix"],
  query: ["form", "spaceDelimited", "pipeDelimited", "deepObject"],
  header: ["simple"],
  cookie: ["form", "cookie"]
}

/** Whether a parameter in a place can have a style. */
export const isStyleOf = (place: unknown, style: unknown): boolean =>
  styles[place as keyof typeof styles]?.includes(style as Style) === true

/** Adds the description of a parameter to its schema. */
export const withDescription = (schema: Schema, description: unknown): Schema => {
  if (typeof description !== "string" || description.trim() === "") return schema
  const text = clip(description.trim(), maxDescriptionChars)
  return isObject(schema) ? { ...schema, description: text } : { description: text }
}

const toArgument = (schemas: Schemas, root: JsonObject, parameter: JsonObject, names: Names): Argument => {
  const place = parameter["in"] as Exclude<Place, "body">
  const key = parameter["name"] as string
  const [[mediaType, content] = []] = isObject(parameter["content"]) ? Object.entries(parameter["content"]) : []
  const media = objectAt(root, content)
  const converted = schemas.convert(mediaType === undefined ? parameter["schema"] : media["schema"])
  const isDeprecated = parameter["deprecated"] === true && isObject(converted)
  const schema = withExample(converted, exampleOf(root, parameter) ?? exampleOf(root, media))
  const style = styles[place].find((each) => each === parameter["style"]) ?? styles[place][0]!
  const { explode } = parameter
  return {
    name: names.take(toName(key, place), `_${place}`),
    key,
    place,
    schema: withDescription(
      isDeprecated ? { ...schema as JsonObject, deprecated: true } : schema,
      parameter["description"]
    ),
    isRequired: place === "path" || parameter["required"] === true,
    style,
    explode: typeof explode === "boolean" ? explode : ["form", "deepObject", "cookie"].includes(style),
    allowReserved: parameter["allowReserved"] === true,
    mediaType,
    isBytes: false
  }
}

/** The path parameters that a path has and the document does not declare. Each is a text. */
const undeclared = (path: string, declared: ReadonlyArray<JsonObject>): ReadonlyArray<JsonObject> => {
  const known = new Set(declared.filter((each) => each["in"] === "path").map(({ name }) => name))
  return [...new Set(Array.from(path.matchAll(/\{([^{}]+)\}/g), ([, name = ""]) => name))]
    .filter((name) => !known.has(name))
    .map((name) => ({ name, in: "path", required: true, schema: { type: "string" } }))
}

/**
 * Returns the arguments of an operation. Throws `OpenApiError` for a broken reference.
 *
 * A name that is taken gets the place of the argument as its suffix: `id`, `id_query`, `id_body`. The order is path, query,
 * header, cookie, body.
 */
export const argumentsOf = (
  schemas: Schemas,
  root: JsonObject,
  { node, operation, parameters, place }: Found,
  hidden: ReadonlySet<string>
): Arguments => {
  const names = new Names()
  const declared = parameters().map((each) => each.node).filter((parameter) =>
    places.has(parameter["in"]) && !hidden.has((parameter["name"] as string).toLowerCase()) &&
    !(parameter["in"] === "header" && ignoredHeaders.has((parameter["name"] as string).toLowerCase())) &&
    (parameter["in"] !== "path" || operation.path.includes(`{${parameter["name"] as string}}`))
  )
  const order = [...places]
  const sorted = [...declared, ...undeclared(operation.path, declared)]
    .toSorted((a, b) => order.indexOf(a["in"]) - order.indexOf(b["in"]))
  const list = sorted.map((parameter) => toArgument(schemas, root, parameter, names))
  const body = bodyOf(schemas, root, node["requestBody"], place)
  if (body === undefined) return { list, body: undefined, extra: undefined, note: undefined }
  const fields = body.fields ??
    [{ key: "body", schema: body.schema, isRequired: body.isRequired, isBytes: body.kind === "bytes" }]
  const members = fields.map((field): Argument => ({
    ...field,
    name: names.take(toName(field.key, "body"), "_body"),
    place: "body",
    style: field.style ?? "form",
    explode: field.explode ?? true,
    allowReserved: field.allowReserved ?? false,
    mediaType: undefined
  }))
  const byKey = new Map(members.map(({ key, name }) => [key, name]))
  return { list: [...list, ...members], body, extra: body.extra, note: noteOf(body, byKey) }
}

/** The choices and the number of members, as sentences. A schema with a union at its root is refused by models. */
const noteOf = ({ choices, counts }: Body, byKey: ReadonlyMap<string, string>): string | undefined => {
  const sentences = choices.map(({ isExclusive, sets }) => {
    const each = sets.map((keys) => keys.map((key) => byKey.get(key) ?? key).join(" and "))
    return `Give ${isExclusive ? "exactly" : "at least"} one of these: ${each.join("; ")}.`
  })
  const all = [...sentences, ...counts]
  return all.length === 0 ? undefined : all.join(" ")
}

/** Makes the schema of the arguments, without definitions. */
export const inputSchema = ({ extra, list }: Arguments): JsonObject => {
  const required = list.filter(({ isRequired }) => isRequired).map(({ name }) => name)
  return {
    type: "object",
    ...(list.length === 0
      ? undefined
      : { properties: Object.fromEntries(list.map(({ name, schema }) => [name, schema])) }),
    ...(required.length === 0 ? undefined : { required }),
    additionalProperties: extra ?? false
  }
}
