/**
 * Generates sample arguments for a JSON Schema of type object: a value for each required property. Supports simple
 * schemas only.
 */
import { isObject, type JsonObject } from "@skein/protocol/JsonRpc"

const values: { readonly [type: string]: unknown } = {
  array: [],
  boolean: true,
  integer: 1,
  null: null,
  number: 1,
  object: {},
  string: "something"
}

/** The names of the required properties. */
export const requiredNames = ({ required }: { readonly [keyword: string]: unknown }): ReadonlyArray<string> =>
  Array.isArray(required) ? required.filter((name) => typeof name === "string") : []

const sampleValue = (schema: unknown): unknown => {
  if (!isObject(schema)) return "something"
  const { enum: choices, type } = schema
  return Array.isArray(choices) ? choices[0] : values[String(type)] ?? "something"
}

export const sampleArguments = (schema: { readonly [keyword: string]: unknown }): JsonObject => {
  const { properties } = schema
  const described = isObject(properties) ? properties : {}
  return Object.fromEntries(requiredNames(schema).map((name) => [name, sampleValue(described[name])]))
}
