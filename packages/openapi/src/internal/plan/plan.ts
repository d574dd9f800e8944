/**
 * Plans an operation: its name, its schemas, and the request that it makes.
 */
import { isObject, type JsonObject } from "@skein/protocol/JsonRpc"
import * as SchemaValidation from "@skein/protocol/SchemaValidation"
import { clip } from "@skein/protocol/Text"
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

const isSuccess = (status: string): boolean => /^2(?:\d\d|XX)$/i.test(status)

interface Response {
  readonly accept: string
  /** The schema of a JSON object. */
  readonly schema: JsonObject | undefined
}

const isObjectSchema = (root: JsonObject, node: unknown, level = 0): boolean => {
  const schema = resolve(root, node)
  if (!isObject(schema) || level > 8) return false
  const { allOf, properties, type } = schema
  return type === "object" || (type === undefined && isObject(properties)) ||
    (Array.isArray(allOf) && allOf.some((member) => isObjectSchema(root, member, level + 1)))
}

/** Reads the answers that a document declares for success. */
const responseOf = (root: JsonObject, node: JsonObject): Response => {
  const responses = isObject(node["responses"]) ? node["responses"] : {}
  const codes = Object.keys(responses).filter(isSuccess).toSorted()
  const contents = (codes.length === 0 ? ["default"] : codes).map((code) =>
    objectAt(root, objectAt(root, responses[code])["content"])
  )
  const mediaTypes = [...new Set(contents.flatMap((content) => Object.keys(content)))].filter((type) =>
    /^[\w.+*-]+\/[\w.+*-]+$/.test(type)
  )
  const isJson = (type: string): boolean => /[/+]json\b|^\*\/\*/.test(type)
  const schemas = contents.flatMap((content) =>
    Object.entries(content).filter(([type]) => isJson(type)).map(([, media]) => objectAt(root, media)["schema"])
  )
  const schema = schemas.find((each) => isObjectSchema(root, each))
  const sorted = mediaTypes.toSorted((a, b) => Number(isJson(b)) - Number(isJson(a)))
  return {
    accept: [
      ...sorted.slice(0, 8).filter((type) => type !== "*/*"),
      sorted.length === 0 ? "application/json" : "*/*;q=0.1"
    ].join(", "),
    schema: isObject(schema) ? schema : undefined
  }
}

const descriptionOf = ({ deprecated, description, method, path, summary }: Operation): string => {
  const isRepeated = summary !== undefined && description?.startsWith(summary.replace(/\.$/, "")) === true
  const parts = [deprecated ? "Deprecated." : undefined, isRepeated ? undefined : summary, description]
  const text = parts.filter((part) => part !== undefined).join("\n\n").trim()
  return clip(text === "" ? `${method} ${path}` : text, maxDescriptionChars)
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
  const { node, operation, place } = found
  const args: Arguments = argumentsOf(schemas.input, root, found, options.hiddenParameters)
  const title = titleOf(operation)
  const { accept, schema } = responseOf(root, node)
  const input = assemble(inputSchema(args), schemas.input.definitions, options.maxSchemaChars)
  return {
    operation,
    arguments: args,
    accept,
    title,
    description: descriptionOf(operation),
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
