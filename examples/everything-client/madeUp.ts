/**
 * Values that a JSON Schema of an object allows, made up: what it requires, and nothing else. Good for simple schemas only.
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

/** The names of what is required. */
export const required = ({ required }: { readonly [keyword: string]: unknown }): ReadonlyArray<string> =>
  Array.isArray(required) ? required.filter((name) => typeof name === "string") : []

const madeUpValue = (schema: unknown): unknown => {
  if (!isObject(schema)) return "something"
  const { enum: choices, type } = schema
  return Array.isArray(choices) ? choices[0] : values[String(type)] ?? "something"
}

export const madeUp = (schema: { readonly [keyword: string]: unknown }): JsonObject => {
  const { properties } = schema
  const described = isObject(properties) ? properties : {}
  return Object.fromEntries(required(schema).map((name) => [name, madeUpValue(described[name])]))
}
