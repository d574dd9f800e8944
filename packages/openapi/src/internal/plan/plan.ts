/**
 * Plans an operation: its name, its schemas, and the request that it makes.
 */
import { isObject, type JsonObject } from "@skein/protocol/JsonRpc"
import * as SchemaValidation from "@skein/protocol/SchemaValidation"
import { clip, quote } from "@skein/protocol/Text"
import type { ToolAnnotations } from "@skein/protocol/Tool"
import * as Result from "effect/Result"
import { InvalidOperation, OpenApiError } from "../../OpenApiError.ts"
import { hintsOfMethods } from "../answer/answer.ts"
import { type Arguments, argumentsOf, inputSchema } from "../arguments/arguments.ts"
import type { RequestPlan } from "../call/request.ts"
import type { Found, Operation } from "../document/operations.ts"
import { objectAt, resolve } from "../document/pointer.ts"
import { titleOf } from "../document/names.ts"
import { assemble } from "../schema/assemble.ts"
import type { Schemas } from "../schema/convert.ts"

/** The longest description of a tool, in UTF-16 units. */
const maxDescriptionChars = 1_024

/** The bounds of plans, with their defaults, and the choices of the author. */
export interface PlanOptions {
  readonly hiddenParameters: ReadonlySet<string>
  readonly outputSchemas: boolean
  readonly maxSchemaChars: number
}

/** The schemas of a document, for arguments and for results. */
export interface BothSchemas {
  readonly input: Schemas
  readonly output: Schemas
}

/** An operation that can be called. */
export interface Plan extends RequestPlan {
  readonly title: string | undefined
  readonly description: string
  readonly inputSchema: JsonObject
  /** Validates the arguments. */
  readonly validation: SchemaValidation.Validation
  readonly outputSchema: JsonObject | undefined
  /** Whether the document declares that the answer is a JSON object. */
  readonly hasObject: boolean
  readonly annotations: ToolAnnotations
}

/** Makes the error for an operation that cannot be called. */
export const invalidOperation = (place: string, message: string): OpenApiError =>
  new OpenApiError({ reason: new InvalidOperation({ message, place }) })

// `fetch` refuses them, since they would show credentials or open a tunnel.
const refusedMethods: ReadonlySet<string> = new Set(["CONNECT", "TRACE", "TRACK"])

const checkMethod = ({ operation: { method }, place }: Found): void => {
  if (refusedMethods.has(method.toUpperCase()) || !/^[\w!#$%&'*+.^`|~-]+$/.test(method)) {
    throw invalidOperation(place, `No request can have the method ${quote(method)}`)
  }
}

const isSuccess = (status: string): boolean => /^2(?:\d\d|XX)$/i.test(status)

interface Response {
  readonly accept: string
  /** The schema of a JSON object. */
  readonly schema: JsonObject | undefined
}

const isObjectSchema = (root: JsonObject, node: unknown, level = 0, seen: Set<unknown> = new Set()): boolean => {
  const schema = resolve(root, node)
  if (!isObject(schema) || level > 8 || seen.has(schema)) return false
  seen.add(schema)
  const { allOf, properties, type } = schema
  return type === "object" || (type === undefined && isObject(properties)) ||
    (Array.isArray(allOf) && allOf.some((member) => isObjectSchema(root, member, level + 1, seen)))
}

/**
 * Reads the answers that a document declares for success. A broken reference among them matters only for an output schema.
 */
const responseOf = (root: JsonObject, node: JsonObject, hasOutputSchema: boolean): Response => {
  const lenient = <A>(read: () => A, otherwise: A): A =>
    hasOutputSchema ? read() : Result.getOrElse(Result.try(read), () => otherwise)
  const at = (part: unknown): JsonObject => lenient(() => objectAt(root, part), {})
  const responses = isObject(node["responses"]) ? node["responses"] : {}
  const codes = Object.keys(responses).filter(isSuccess).toSorted()
  const contents = (codes.length === 0 ? ["default"] : codes).map((code) => at(at(responses[code])["content"]))
  const mediaTypes = [...new Set(contents.flatMap((content) => Object.keys(content)))].filter((type) =>
    /^[\w.+*-]+\/[\w.+*-]+$/.test(type)
  )
  const isJson = (type: string): boolean => /[/+]json\b|^\*\/\*/.test(type)
  const schemas = contents.flatMap((content) =>
    Object.entries(content).filter(([type]) => isJson(type)).map(([, media]) => at(media)["schema"])
  )
  const schema = schemas.find((each) => lenient(() => isObjectSchema(root, each), false))
  const sorted = mediaTypes.toSorted((a, b) => Number(isJson(b)) - Number(isJson(a)))
  return {
    accept: [
      ...sorted.slice(0, 8).filter((type) => type !== "*/*"),
      sorted.length === 0 ? "application/json" : "*/*;q=0.1"
    ].join(", "),
    schema: isObject(schema) ? schema : undefined
  }
}

const descriptionOf = (
  { deprecated, description, method, path, summary }: Operation,
  note: string | undefined
): string => {
  const isRepeated = summary !== undefined && description?.startsWith(summary.replace(/\.$/, "")) === true
  const parts = [deprecated ? "Deprecated." : undefined, isRepeated ? undefined : summary, description]
  const text = parts.filter((part) => part !== undefined).join("\n\n").trim()
  const whole = text === "" ? `${method} ${path}` : text
  if (note === undefined) return clip(whole, maxDescriptionChars)
  const end = `\n\n${clip(note, maxDescriptionChars / 4)}`
  return clip(whole, maxDescriptionChars - end.length) + end
}

/**
 * An output schema that every object matches. Clients refuse a result that does not match, and APIs do not always answer
 * as their documents say.
 */
const outputSchemaOf = (schemas: Schemas, schema: JsonObject, maxChars: number): JsonObject =>
  assemble(
    {
      type: "object",
      anyOf: [schemas.convert(schema), { description: "Another object: the API may differ from its document" }]
    },
    schemas.definitions,
    maxChars
  )

/** Plans an operation. Throws `OpenApiError` if it cannot be called. */
export const planOf = (
  root: JsonObject,
  schemas: BothSchemas,
  found: Found,
  options: PlanOptions
): Plan => {
  checkMethod(found)
  const { node, operation, place } = found
  const args: Arguments = argumentsOf(schemas.input, root, found, options.hiddenParameters)
  const title = titleOf(operation)
  const { accept, schema } = responseOf(root, node, options.outputSchemas)
  const input = assemble(inputSchema(args), schemas.input.definitions, options.maxSchemaChars)
  return {
    operation,
    arguments: args,
    accept,
    title,
    description: descriptionOf(operation, args.note),
    inputSchema: input,
    // Compiled as the server and its clients do.
    validation: Result.getOrThrowWith(
      SchemaValidation.compile(input),
      ({ message }) => invalidOperation(place, `Its arguments have no usable schema: ${clip(message, 300)}`)
    ),
    outputSchema: schema === undefined || !options.outputSchemas
      ? undefined
      : outputSchemaOf(schemas.output, schema, options.maxSchemaChars),
    hasObject: schema !== undefined,
    annotations: {
      ...(title === undefined ? undefined : { title }),
      ...hintsOfMethods[operation.method],
      openWorldHint: true
    }
  }
}
