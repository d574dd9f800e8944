/**
 * Converts the words of a command line to the arguments of a tool, by its input schema.
 */
import { isObject, type JsonObject } from "@skein/protocol/JsonRpc"
import type { Tool } from "@skein/protocol/Tool"
import * as SchemaValidation from "@skein/protocol/SchemaValidation"
import * as Result from "effect/Result"
import { type Assignment, isRounded, roundedAdvice } from "../base/givenArguments.ts"
import { argumentsOf, quoteLine, quoteName } from "../base/format.ts"
import { suggestion } from "../connection/suggestion.ts"

// How deep references and unions of a schema are followed: a schema may refer to itself.
const maxDepth = 8

/** The target of a reference within the schema. */
const resolve = (root: JsonObject, reference: string): unknown =>
  reference.startsWith("#/")
    ? reference.slice(2).split("/").reduce<unknown>(
      (schema, part) => isObject(schema) ? schema[part.replaceAll("~1", "/").replaceAll("~0", "~")] : undefined,
      root
    )
    : undefined

/** The parts of a schema that decide how a word is converted. */
interface Accepted {
  readonly types: Set<string>
  readonly values: Array<unknown>
  items: unknown
}

/**
 * Collects the types and the values that a schema and its alternatives accept. Each part of a schema is read once: a
 * server could otherwise list alternatives that refer to each other, which multiply with each level.
 */
const collect = (
  root: JsonObject,
  schema: unknown,
  into: Accepted,
  seen = new Set<object>(),
  depth = 0
): Accepted => {
  if (!isObject(schema) || depth > maxDepth || seen.has(schema)) return into
  seen.add(schema)
  const { $ref, allOf, anyOf, const: only, enum: values, items, oneOf, type } = schema
  if (typeof $ref === "string") collect(root, resolve(root, $ref), into, seen, depth + 1)
  for (const each of [allOf, anyOf, oneOf].flatMap((some) => Array.isArray(some) ? some.slice(0, 100) : [])) {
    collect(root, each, into, seen, depth + 1)
  }
  if (Object.hasOwn(schema, "const")) into.values.push(only)
  // Not `push(...values)`: a server can list more values than a call may have arguments.
  else if (Array.isArray(values)) { for (const value of values) into.values.push(value) }
  else for (const each of Array.isArray(type) ? type : [type]) if (typeof each === "string") into.types.add(each)
  if (items !== undefined) into.items = items
  return into
}

const accepted = (root: JsonObject, schema: unknown): Accepted =>
  collect(root, schema, { types: new Set(), values: [], items: undefined })

const numberOf = (text: string, isInteger: boolean): number | undefined => {
  const number = Number(text)
  const fits = text.trim() !== "" && Number.isFinite(number) && (!isInteger || Number.isInteger(number)) &&
    !isRounded(text)
  return fits ? number : undefined
}

const booleanOf = (text: string): boolean | undefined =>
  /^(true|yes|y)$/i.test(text) ? true : /^(false|no|n)$/i.test(text) ? false : undefined

/** Converts a word to a value of one of the types; undefined if it fits none of them. */
const convert = ({ types, values }: Accepted, text: string): unknown => {
  const fixed = values.find((value) => (typeof value === "string" ? value : JSON.stringify(value)) === text)
  if (fixed !== undefined) return fixed
  if (types.has("number") || types.has("integer")) {
    const number = numberOf(text, !types.has("number"))
    // A union with strings takes 007 and 1e3 as they are typed.
    if (number !== undefined && (!types.has("string") || String(number) === text)) return number
  }
  const boolean = types.has("boolean") ? booleanOf(text) : undefined
  if (boolean !== undefined && (!types.has("string") || /^(true|false)$/.test(text))) return boolean
  if (types.has("null") && text === "null") return null
  return types.has("string") || (types.size === 0 && values.length === 0) ? text : undefined
}

// How many of the values of an argument, or of the missing arguments, a message lists.
const maxListed = 20

const withArticle: Readonly<Record<string, string>> = {
  array: "an array",
  boolean: "true or false",
  integer: "an integer",
  number: "a number",
  null: "null",
  object: "an object",
  string: "a string"
}

/** The type of an argument, in words. */
const takes = ({ types, values }: Accepted): string => {
  const listed = values.slice(0, maxListed).map((value) =>
    quoteName(typeof value === "string" ? value : JSON.stringify(value))
  )
  const fixed = values.length === 0
    ? []
    : [`one of ${listed.join(", ")}${values.length > maxListed ? ", …" : ""}`]
  return [...fixed, ...Array.from(types, (type) => withArticle[type] ?? quoteName(type))].join(", or ")
}

/** The value of an argument, from all words with its name. */
const valueOf = (
  name: string,
  root: JsonObject,
  schema: unknown,
  given: ReadonlyArray<Assignment["given"]>
): Result.Result<unknown, string> => {
  const whole = accepted(root, schema)
  const [first] = given
  if (given.length === 1 && first !== undefined && "value" in first) return Result.succeed(first.value)
  const single = given.length === 1 && first !== undefined && "text" in first ? convert(whole, first.text) : undefined
  if (single !== undefined) return Result.succeed(single)
  const about = `The argument ${quoteName(name)}`
  const takesNumbers = [whole, accepted(root, whole.items)].some(({ types }) =>
    types.has("integer") || types.has("number")
  )
  if (takesNumbers && given.some((each) => "text" in each && isRounded(each.text))) {
    return Result.fail(`${about} ${roundedAdvice}`)
  }
  if (whole.types.has("array")) {
    const item = accepted(root, whole.items)
    const values = given.map((each) => "value" in each ? each.value : convert(item, each.text))
    return values.includes(undefined)
      ? Result.fail(`${about} takes an array, and each of its words must be ${takes(item) || "JSON after :="}`)
      : Result.succeed(values)
  }
  if (given.length > 1) return Result.fail(`${about} is given more than once, and takes ${takes(whole) || "one value"}`)
  const advice = whole.types.has("object") ? `: write it as JSON, with ${quoteName(name)}:={…}` : ""
  return Result.fail(`${about} takes ${takes(whole)}${advice}`)
}

/** Whether a schema has a place for an argument that it does not name. */
const isOpen = ({ additionalProperties, patternProperties }: JsonObject): boolean =>
  additionalProperties === true || isObject(additionalProperties) || isObject(patternProperties)

/**
 * The arguments of a tool from words, by its input schema. Fails with a message that names the argument, and no value:
 * it can be a secret.
 */
export const toolArguments = (
  tool: Tool,
  words: ReadonlyArray<Assignment>
): Result.Result<Readonly<Record<string, unknown>>, string> => {
  const root = tool.inputSchema as JsonObject
  const { additionalProperties, properties, required } = root
  const known = isObject(properties) ? properties : {}
  const list = argumentsOf(tool).map(quoteName).join(", ")
  const has = list === "" ? "It takes no arguments" : `Its arguments are ${list}`
  const about = `The tool ${quoteName(tool.name)}`
  const members: Array<readonly [string, unknown]> = []
  for (const [name, given] of Map.groupBy(words, ({ name }) => name)) {
    const isKnown = Object.hasOwn(known, name)
    const [owner = ""] = name.split(/[.[]/)
    const near = isKnown
      ? ""
      : Object.hasOwn(known, owner)
      ? `; give the whole argument as JSON: ${quoteName(owner)}:={…}.`
      : suggestion(name, Object.keys(known))
    // Effect's struct allows further arguments, and drops them: there too a typing error is not sent.
    if (!isKnown && (!isOpen(root) || (additionalProperties === true && near !== ""))) {
      return Result.fail(`${about} has no argument ${quoteName(name)}${near === "" ? "." : near} ${has}`)
    }
    const value = valueOf(name, root, isKnown ? known[name] : additionalProperties, given.map(({ given }) => given))
    if (Result.isFailure(value)) return Result.fail(value.failure)
    members.push([name, value.success])
  }
  const missing = (Array.isArray(required) ? required : []).filter((name): name is string =>
    typeof name === "string" && !members.some(([given]) => given === name)
  )
  if (missing.length > 0) {
    const more = missing.length > maxListed ? ", …" : ""
    const some = missing.slice(0, maxListed).map(quoteName).join(", ")
    return Result.fail(`${about} needs the argument ${some}${more}. ${has}`)
  }
  // `fromEntries` defines members, so that an argument named `__proto__` stays one.
  return Result.succeed(Object.fromEntries(members))
}

/**
 * Why arguments do not fit the input schema of a tool. The message names the argument and the part of the schema, and no
 * value: it can be a secret. Undefined if they fit, or if the schema cannot be used.
 */
export const argumentsProblem = (tool: Tool, args: Readonly<Record<string, unknown>>): string | undefined => {
  const compiled = SchemaValidation.compile(tool.inputSchema)
  const [problem] = Result.isSuccess(compiled) ? compiled.success.problems(args) : []
  if (problem === undefined) return undefined
  const { message, path } = problem
  const [name, ...inside] = path.map(String)
  if (name === undefined) return `The arguments of the tool ${quoteName(tool.name)} do not fit: ${quoteLine(message)}`
  const at = inside.length === 0 ? "" : ` does not fit at ${quoteName(inside.join("."))}`
  return `The argument ${quoteName(name)}${at || " does not fit"}: ${quoteLine(message)}`
}
