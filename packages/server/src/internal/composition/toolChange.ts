/**
 * Changes tools: their names and descriptions, and the arguments that callers see.
 */
import * as Json from "@skein/protocol/Json"
import { isObject, type JsonObject } from "@skein/protocol/JsonRpc"
import type { ObjectSchema, ToolAnnotations } from "@skein/protocol/Tool"
import { quote } from "@skein/protocol/Text"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { ToolEntry } from "../../Catalog.ts"
import { DefinitionError, InvalidSchema, InvalidValue } from "../../DefinitionError.ts"
import * as jsonSchema from "../schema/jsonSchema.ts"
import * as toolCall from "../handlers/toolCall.ts"
import { jsonOf, omitUndefined } from "../base/json.ts"

/** A change of one argument. */
export interface ArgumentChange {
  /** The name that callers use. */
  readonly name?: string | undefined
  /** A name for people. */
  readonly title?: string | undefined
  readonly description?: string | undefined
  /** The value that the tool always receives. Callers do not see the argument. It must be JSON. */
  readonly value?: unknown
  /** The value that the tool receives if a caller leaves the argument out, which then is not required. It must be JSON. */
  readonly default?: unknown
  /** Whether callers do not see the argument. Without a `value` and a `default` the tool never receives it. */
  readonly hidden?: boolean | undefined
}

/** A change of one tool. Everything that is absent stays as it is. */
export interface ToolChange {
  readonly name?: string | undefined
  readonly title?: string | undefined
  readonly description?: string | undefined
  /** Hints that are added to those of the tool, or replace them one by one. */
  readonly annotations?: ToolAnnotations | undefined
  /** The changes of arguments, by the names that the tool has for them. */
  readonly arguments?: { readonly [name: string]: ArgumentChange } | undefined
}

/** Keywords beside `properties` and `required` that may name arguments. */
const otherKeywords = [
  "$ref",
  "allOf",
  "anyOf",
  "oneOf",
  "not",
  "if",
  "then",
  "else",
  "dependentRequired",
  "dependentSchemas",
  "dependencies",
  "propertyNames",
  "patternProperties",
  "minProperties",
  "maxProperties"
]

/** The change of one argument of a call. */
interface Plan {
  /** The name that the tool has for it. */
  readonly own: string
  /** The name that callers use; `undefined` if they do not see it. */
  readonly listed: string | undefined
  readonly fallback: unknown
}

const isHidden = ({ hidden, value }: ArgumentChange): boolean => hidden === true || value !== undefined

const planOf = (own: string, change: ArgumentChange): Plan => ({
  own,
  listed: isHidden(change) ? undefined : change.name ?? own,
  fallback: change.value !== undefined ? change.value : change.default
})

/** Why the arguments of a tool cannot be changed so. */
const problemOf = (
  schema: ObjectSchema,
  changes: ReadonlyArray<readonly [string, ArgumentChange]>
): string | undefined => {
  const properties = propertiesOf(schema)
  // The schema may be that of another server, with any number of arguments.
  const required = new Set(requiredOf(schema))
  let text: string | undefined
  for (const [name, change] of changes) {
    if (!Object.hasOwn(properties, name)) return `it has no argument ${quote(name)}`
    if (isHidden(change) && required.has(name) && change.value === undefined && change.default === undefined) {
      return `its argument ${quote(name)} is required, so it needs a value or a default to be hidden`
    }
    const values = [change.value, change.default].filter((value) => value !== undefined)
    if (values.some((value) => jsonOf(value) === undefined)) {
      return `the value of its argument ${quote(name)} is not JSON`
    }
    const moves = isHidden(change) || (change.name ?? name) !== name
    const keyword = moves ? otherKeywords.find((keyword) => Object.hasOwn(schema, keyword)) : undefined
    if (keyword !== undefined) return `its argument ${quote(name)} may be named in the keyword ${keyword} of its schema`
    if (moves && (text ??= JSON.stringify(schema)).includes(`"#/properties/`)) {
      return "its schema refers to its arguments"
    }
  }
  const byName = new Map(changes)
  const listed = new Set<string>()
  for (const own of Object.keys(properties)) {
    const name = planOf(own, byName.get(own) ?? {}).listed
    if (name === undefined) continue
    if (listed.has(name)) return `it would have two arguments ${quote(name)}`
    listed.add(name)
  }
  return undefined
}

const propertiesOf = (schema: JsonObject): JsonObject => isObject(schema["properties"]) ? schema["properties"] : {}

const requiredOf = ({ required }: JsonObject): ReadonlyArray<unknown> => Array.isArray(required) ? required : []

/** Changes the schema of the arguments as callers see it. */
const changeSchema = (schema: ObjectSchema, changes: ReadonlyMap<string, ArgumentChange>): ObjectSchema => {
  const listedName = (own: string): string | undefined => planOf(own, changes.get(own) ?? {}).listed
  const properties = Object.fromEntries(
    Object.entries(propertiesOf(schema)).flatMap(([own, property]) => {
      const listed = listedName(own)
      if (listed === undefined) return []
      const { default: fallback, description, title } = changes.get(own) ?? {}
      const added = omitUndefined({ title, description, default: fallback })
      const isSame = Object.keys(added).length === 0
      return [[listed, isSame ? property : { ...(isObject(property) ? property : {}), ...added }]]
    })
  )
  const required = requiredOf(schema).flatMap((own) => {
    const listed = typeof own === "string" ? listedName(own) : undefined
    return listed === undefined || changes.get(own as string)?.default !== undefined ? [] : [listed]
  })
  const { required: _, ...rest } = schema
  return { ...rest, properties, ...(required.length === 0 ? undefined : { required }) }
}

/**
 * Makes the function that turns the arguments of a caller into those of the tool. It returns a message for an argument that
 * callers do not have.
 */
const changeArguments = (plans: ReadonlyArray<Plan>) => {
  const ownNames = new Map(plans.flatMap(({ listed, own }) => listed === undefined ? [] : [[listed, own] as const]))
  const taken = new Set(plans.map(({ own }) => own))
  const fallbacks = plans.filter(({ fallback }) => fallback !== undefined)
  return (args: JsonObject): Result.Result<JsonObject, string> => {
    const entries: Array<readonly [string, unknown]> = []
    const given = new Set<string>()
    for (const [listed, value] of Object.entries(args)) {
      const own = ownNames.get(listed)
      if (own === undefined && taken.has(listed)) return Result.fail(`there is no argument ${quote(listed)}`)
      given.add(own ?? listed)
      entries.push([own ?? listed, value])
    }
    for (const { fallback, own } of fallbacks) if (!given.has(own)) entries.push([own, fallback])
    const made = Object.fromEntries(entries)
    Json.carry(args, made, (listed) => ownNames.get(listed) ?? listed)
    return Result.succeed(made)
  }
}

/** Changes a tool, which has the name `name` afterwards. Fails if the tool does not have what is to be changed. */
export const changeTool = (
  entry: ToolEntry,
  name: string,
  { annotations, arguments: args = {}, description, title }: ToolChange
): Result.Result<ToolEntry, DefinitionError> => {
  const { definition } = entry
  const changes = new Map(Object.entries(args))
  const problem = problemOf(definition.inputSchema, [...changes])
  if (problem !== undefined) {
    const message = `The tool ${quote(definition.name)} cannot be changed: ${problem}`
    return Result.fail(error(definition.name, new InvalidValue({ message })))
  }
  const added = omitUndefined({
    title,
    description,
    annotations: annotations && { ...definition.annotations, ...omitUndefined(annotations) }
  })
  const described = { ...definition, name, ...added }
  if (changes.size === 0) return Result.succeed({ ...entry, definition: described })
  const inputSchema = changeSchema(definition.inputSchema, changes)
  const headers = Result.try(() => jsonSchema.headers(inputSchema))
  if (Result.isFailure(headers)) {
    const message = `The tool ${quote(name)} has an invalid input schema: ${String(headers.failure)}`
    return Result.fail(error(name, new InvalidSchema({ message, schema: "input", cause: headers.failure })))
  }
  const toOwn = changeArguments([...changes].map(([own, change]) => planOf(own, change)))
  return Result.succeed({
    ...entry,
    definition: { ...described, inputSchema },
    headers: headers.success,
    call: (args, request) => {
      const own = toOwn(args)
      return Result.isSuccess(own)
        ? Effect.suspend(() => entry.call(own.success, request))
        : toolCall.refuseArguments(name, own.failure, request.caller.revision)
    }
  })
}

const error = (definition: string, reason: DefinitionError["reason"]): DefinitionError =>
  new DefinitionError({ reason, kind: "tool", definition })
