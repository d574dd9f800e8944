/**
 * Merges the parameters and the body of an operation into one flat object of arguments.
 */
import { isObject, type JsonObject } from "@skein/protocol/JsonRpc"
import { clip } from "@skein/protocol/Text"
import { type Body, bodyOf } from "./body.ts"
import type { Found } from "../document/operations.ts"
import { resolve } from "../document/pointer.ts"
import { reservedHeaders, type Serialization, type Style } from "./serialize.ts"
import { Names, toName } from "../document/names.ts"
import type { Schema, Schemas } from "../schema/convert.ts"
import { maxDescriptionChars } from "../schema/keywords.ts"

/** The place of an argument in the request. */
export type Place = "path" | "query" | "header" | "cookie" | "body"

/** An argument of a tool, with its place in the request. */
export interface Argument extends Serialization {
  /** The name for the model. */
  readonly name: string
  readonly place: Place
  readonly schema: Schema
  readonly isRequired: boolean
  /** Whether the value is sent as JSON text, for a parameter with `content`. */
  readonly isJson: boolean
  /** Whether the value, or each item of it, is base64 text of bytes that are sent as they are. */
  readonly isBytes: boolean
}

/** The arguments of an operation. */
export interface Arguments {
  readonly list: ReadonlyArray<Argument>
  readonly body: Body | undefined
  /** The schema of further arguments, which become members of the body. */
  readonly extra: Schema | undefined
}

const places: ReadonlySet<unknown> = new Set(["path", "query", "header", "cookie"])

// `reservedHeaders` has those that OpenAPI tells to ignore, too ("Parameter Object", `name`).
const ignoredHeaders: ReadonlySet<string> = new Set([...reservedHeaders, "keep-alive", "te", "trailer"])

const styles: Readonly<Record<Exclude<Place, "body">, ReadonlyArray<Style>>> = {
  path: ["simple", "label", "matrix"],
  query: ["form", "spaceDelimited", "pipeDelimited", "deepObject"],
  header: ["simple"],
  cookie: ["form"]
}

/** Adds the description of a parameter to its schema. */
export const withDescription = (schema: Schema, description: unknown): Schema => {
  if (typeof description !== "string" || description.trim() === "") return schema
  const text = clip(description.trim(), maxDescriptionChars)
  return isObject(schema) ? { ...schema, description: text } : { description: text }
}

const toArgument = (schemas: Schemas, root: JsonObject, parameter: JsonObject, names: Names): Argument => {
  const place = parameter["in"] as Exclude<Place, "body">
  const key = parameter["name"] as string
  const [content] = isObject(parameter["content"]) ? Object.values(parameter["content"]) : []
  const media = resolve(root, content)
  const converted = schemas.convert(isObject(media) ? media["schema"] : parameter["schema"])
  const example = parameter["example"]
  const schema = isObject(converted) && example !== undefined && converted["examples"] === undefined &&
      JSON.stringify(example).length <= 200
    ? { ...converted, examples: [example] }
    : converted
  const style = styles[place].find((each) => each === parameter["style"]) ?? styles[place][0]!
  const { explode } = parameter
  return {
    name: names.take(toName(key, place), `_${place}`),
    key,
    place,
    schema: withDescription(schema, parameter["description"]),
    isRequired: place === "path" || parameter["required"] === true,
    style,
    explode: typeof explode === "boolean" ? explode : style === "form" || style === "deepObject",
    allowReserved: parameter["allowReserved"] === true,
    isJson: content !== undefined,
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
  const declared = parameters().filter((parameter) =>
    places.has(parameter["in"]) && !hidden.has((parameter["name"] as string).toLowerCase()) &&
    !(parameter["in"] === "header" && ignoredHeaders.has((parameter["name"] as string).toLowerCase())) &&
    (parameter["in"] !== "path" || operation.path.includes(`{${parameter["name"] as string}}`))
  )
  const order = [...places]
  const sorted = [...declared, ...undeclared(operation.path, declared)]
    .toSorted((a, b) => order.indexOf(a["in"]) - order.indexOf(b["in"]))
  const list = sorted.map((parameter) => toArgument(schemas, root, parameter, names))
  const body = bodyOf(schemas, root, node["requestBody"], place)
  if (body === undefined) return { list, body: undefined, extra: undefined }
  const fields = body.fields ?? [{ key: "body", schema: body.schema, isRequired: body.isRequired, isBytes: body.kind === "bytes" }]
  const members = fields.map((field): Argument => ({
    ...field,
    name: names.take(toName(field.key, "body"), "_body"),
    place: "body",
    style: field.style ?? "form",
    explode: field.explode ?? true,
    allowReserved: false,
    isJson: false
  }))
  return { list: [...list, ...members], body, extra: body.extra }
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
