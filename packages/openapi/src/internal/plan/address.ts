/**
 * The addresses of operations as resources and resource templates, and the arguments in a URI.
 */
import { isObject, type JsonObject } from "@skein/protocol/JsonRpc"
import { clip } from "@skein/protocol/Text"
import * as UriTemplate from "@skein/protocol/UriTemplate"
import * as Result from "effect/Result"
import type { Argument } from "../arguments/arguments.ts"
import { encode } from "../arguments/serialize.ts"
import { Names } from "../document/names.ts"
import { invalidOperation, type Plan } from "./plan.ts"
import { typesOf } from "../schema/keywords.ts"

/** The URI of an operation without arguments, and the template with all of them. */
export interface Address {
  readonly uri: string
  readonly template: string
  /** The arguments by the names of the variables. */
  readonly variables: ReadonlyMap<string, Argument>
}

const encodePath = (path: string): string => path.split("/").map(encode).join("/")

const isScalarList = ({ schema }: Argument): boolean => {
  const items = isObject(schema) ? schema["items"] : undefined
  return isObject(schema) && typesOf(schema).includes("array") && isObject(items) && isText(items)
}

const isText = (schema: JsonObject): boolean => {
  const types = typesOf(schema)
  return types.length > 0 && types.every((type) => type !== "object" && type !== "array")
}

const isAddressable = (argument: Argument): boolean =>
  argument.place === "query" && isObject(argument.schema) && (isText(argument.schema) || isScalarList(argument))

/** Makes the address of an operation below a prefix: `openapi://pets/pets/{petId}{?fields}`. */
export const addressOf = (prefix: string, { arguments: { list }, operation }: Plan): Address => {
  const names = new Names()
  const variables = new Map<string, Argument>()
  const variable = (argument: Argument): string => {
    const name = names.take(argument.name.replaceAll(/\W/g, "_"))
    variables.set(name, argument)
    return name
  }
  const [path = ""] = operation.path.split(/[?#]/)
  const byKey = new Map(list.filter(({ place }) => place === "path").map((argument) => [argument.key, argument]))
  const template = path.split(/(\{[^{}]+\})/).map((part) => {
    const argument = byKey.get(part.slice(1, -1))
    return argument === undefined ? encodePath(part) : `{${variable(argument)}}`
  }).join("")
  const query = list.filter(isAddressable).map(variable)
  return {
    uri: prefix + encodePath(path),
    template: `${prefix}${template}${query.length === 0 ? "" : `{?${query.join(",")}}`}`,
    variables
  }
}

/** Checks that an operation can be read by a URI. Throws `OpenApiError` if it cannot. */
export const checkAddress = (
  as: "resource" | "template",
  { template, variables }: Address,
  { arguments: { list }, operation }: Plan,
  place: string
): void => {
  const fail = (why: string) => {
    throw invalidOperation(place, `It cannot be a ${as === "resource" ? "resource" : "resource template"}: ${why}`)
  }
  if (operation.method !== "GET") fail(`its method is ${operation.method}, not GET`)
  const given = new Set(as === "resource" ? [] : [...variables.values()].map(({ name }) => name))
  const missing = list.filter(({ isRequired, name }) => isRequired && !given.has(name)).map(({ name }) => name)
  if (missing.length > 0) fail(`a URI cannot give the required arguments ${missing.join(", ")}`)
  const parsed = UriTemplate.make(template)
  if (as === "template" && Result.isFailure(parsed)) fail(parsed.failure)
  if (as === "template" && variables.size === 0) fail("it has no arguments that a URI can give. Make it a resource")
}

/** The value of a text by the types of its schema. A text that no type reads stays a text, and validation refuses it. */
const toValue = (schema: unknown, text: string): unknown => {
  const types = isObject(schema) ? typesOf(schema) : []
  if ((types.includes("integer") || types.includes("number")) && /^-?\d+(?:\.\d+)?(?:e[+-]?\d+)?$/i.test(text)) {
    return Number(text)
  }
  if (types.includes("boolean") && /^(?:true|false)$/.test(text)) return text === "true"
  return text
}

/** Reads the arguments in the variables of a URI. Returns a message if they do not match the schema. */
export const readArguments = (plan: Plan, { variables }: Address, values: JsonObject): JsonObject | string => {
  const args: Record<string, unknown> = {}
  for (const [name, argument] of variables) {
    const value = values[name]
    if (typeof value !== "string") continue
    const { schema } = argument
    args[argument.name] = isScalarList(argument)
      ? value.split(",").map((item) => toValue(isObject(schema) ? schema["items"] : undefined, item))
      : toValue(schema, value)
  }
  const [problem] = plan.validation.problems(args, 100_000)
  return problem === undefined
    ? args
    : `The URI has an invalid argument: ${clip(`${problem.path.join(".")}: ${problem.message}`, 300)}`
}
