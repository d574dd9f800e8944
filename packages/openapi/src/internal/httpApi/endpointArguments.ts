/**
 * Merges the path parameters, the query, the headers and the payload of an endpoint into one object of arguments.
 *
 * Values of paths, queries and headers are text on the wire. A model receives the JSON type of the decoded value where it
 * has one, such as a number, and the text of the wire elsewhere, such as the ISO text of a date.
 */
import { isObject, type JsonObject } from "@skein/protocol/JsonRpc"
import * as Nesting from "@skein/protocol/Nesting"
import type { ObjectSchema } from "@skein/protocol/Tool"
import * as JsonSchema from "@skein/server/JsonSchema"
import * as Effect from "effect/Effect"
import * as Base64 from "effect/encoding/Base64"
import type { Top as Endpoint } from "effect/http-api/HttpApiEndpoint"
import * as HttpApiSchema from "effect/http-api/HttpApiSchema"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as AST from "effect/SchemaAST"
import { headerProblem, reservedHeaders } from "../arguments/serialize.ts"

/** The part of a request that an argument belongs to, named as the handlers of `effect/http-api` name it. */
export type Place = "params" | "query" | "headers" | "payload"

/** The parts of a request, decoded, as handlers receive them. */
export type Parts = { readonly [Key in Place]?: unknown }

type Codec = Schema.Codec<unknown, unknown, unknown, unknown>

/** The arguments of an endpoint: their JSON Schema, and the function that makes the parts of the request. */
export interface Arguments {
  readonly jsonSchema: () => ObjectSchema
  /** Decodes the arguments of a call, with the headers that are not arguments. Fails with a message for the model. */
  readonly read: (args: JsonObject, headers: Headers) => Effect.Effect<Parts, string, unknown>
}

type Headers = Readonly<Record<string, string>>

/** Why an endpoint cannot be a tool. */
export class Unsupported extends Error {}

/** A member of a part that is an argument of its own. */
interface Member {
  /** The name of the argument. */
  readonly name: string
  /** The name in the part. */
  readonly key: string
  readonly isRequired: boolean
  /** The schema that describes the argument. */
  readonly schema: Codec
  /** Makes the text of the wire from the JSON value; `undefined` if the argument is that text. */
  readonly toWire: ((value: unknown) => Effect.Effect<unknown, Schema.SchemaError, unknown>) | undefined
}

// The author adds the values of these headers.
const ownHeaders: ReadonlySet<string> = new Set([...reservedHeaders, "dpop"])

interface Part {
  readonly place: Place
  readonly codec: Codec
  /** `members`: its members are arguments. `whole`: it is one argument. */
  readonly kind: "members" | "whole" | "bytes"
  readonly isText: boolean
}

// The largest number of values in which all problems are reported, as for the arguments of other tools.
const maxValuesForAllProblems = 10_000

const suffixes: Readonly<Record<Place, string>> = {
  params: "_path",
  query: "_query",
  headers: "_header",
  payload: "_body"
}

const toCodec = (ast: AST.AST): Codec => Schema.make(ast)

/** The struct that a codec reads: below the encoding of a class, for example. */
const structOf = (ast: AST.AST): AST.Objects | undefined => {
  const read = ast.encoding === undefined ? ast : ast.encoding.at(-1)!.to
  return AST.isObjects(read) && read.indexSignatures.length === 0 &&
      read.propertySignatures.every(({ name }) => typeof name === "string")
    ? read
    : undefined
}

/** Whether values of a decoded type are JSON. A class, a date or an option is not. */
const isJsonType = (ast: AST.AST, seen: Set<AST.AST> = new Set()): boolean => {
  if (seen.has(ast)) return true
  seen.add(ast)
  switch (ast._tag) {
    case "String":
    case "Number":
    case "Boolean":
    case "Null":
    case "Undefined":
    case "Enum":
    case "TemplateLiteral":
      return true
    case "Literal":
      return typeof ast.literal !== "bigint"
    case "Union":
      return ast.types.every((type) => isJsonType(type, seen))
    case "Arrays":
      return [...ast.elements, ...ast.rest].every((type) => isJsonType(type, seen))
    default:
      return false
  }
}

const describing = (codec: Codec, from: AST.AST): Codec => {
  const description = AST.resolveDescription(from)
  return description === undefined || AST.resolveDescription(codec.ast) !== undefined
    ? codec
    : codec.annotate({ description }) as Codec
}

const textMember = (signature: AST.PropertySignature): Omit<Member, "name"> => {
  const { name, type } = signature
  const decoded = AST.toType(type)
  const codec = toCodec(type)
  const shared = { key: String(name), isRequired: !AST.isOptional(AST.toEncoded(type)) }
  if (!isJsonType(decoded)) return { ...shared, schema: describing(codec, decoded), toWire: undefined }
  const schema = toCodec(decoded)
  const read = Schema.decodeUnknownEffect(Schema.toCodecJson(schema))
  const write = Schema.encodeUnknownEffect(codec)
  return { ...shared, schema, toWire: (value) => Effect.flatMap(read(value), write) }
}

/** The payload that a tool sends, of those that the endpoint accepts: JSON, else a form, else text, else bytes. */
const payloadOf = ({ method, payload }: Endpoint): Part | undefined => {
  const entries = [...payload.values()].flatMap(({ encoding, schemas }) =>
    schemas.filter((schema) => !HttpApiSchema.isNoContent(schema.ast)).map((schema) => ({ tag: encoding._tag, schema }))
  )
  if (entries.length === 0) return undefined
  const of = (tag: string) => entries.filter((entry) => entry.tag === tag).map(({ schema }) => schema as Codec)
  const all = (["Json", "FormUrlEncoded", "Text", "Uint8Array"] as const).map((tag) => [tag, of(tag)] as const)
  const [tag, schemas] = all.find(([, schemas]) => schemas.length > 0) ?? []
  if (tag === undefined) {
    const isStream = entries.some(({ tag }) => tag === "Stream")
    throw new Unsupported(`its payload is ${isStream ? "a stream" : "multipart"}, which arguments cannot be`)
  }
  const codec = schemas!.length === 1 ? schemas![0]! : Schema.Union(schemas!) as unknown as Codec
  if (tag === "Uint8Array") return { place: "payload", codec, kind: "bytes", isText: false }
  const isForm = tag === "FormUrlEncoded" || method === "GET"
  const hasMembers = isForm || tag === "Json" ? structOf(codec.ast) !== undefined : false
  return { place: "payload", codec, kind: hasMembers ? "members" : "whole", isText: isForm }
}

const partsOf = (endpoint: Endpoint): ReadonlyArray<Part> => {
  const texts = (["params", "query", "headers"] as const).flatMap((place): ReadonlyArray<Part> => {
    const codec = endpoint[place] as Codec | undefined
    if (codec === undefined) return []
    return [{ place, codec, kind: structOf(codec.ast) === undefined ? "whole" : "members", isText: true }]
  })
  const payload = payloadOf(endpoint)
  return payload === undefined ? texts : [...texts, payload]
}

/** The properties of an object schema, without a reference at its root. */
const propertiesOf = (node: unknown, root: JsonObject): { properties: JsonObject; required: ReadonlyArray<string> } => {
  const name = isObject(node) && typeof node["$ref"] === "string" ? node["$ref"].replace(/^#\/\$defs\//, "") : undefined
  const definitions = isObject(root["$defs"]) ? root["$defs"] : {}
  const found = name !== undefined && Object.hasOwn(definitions, name) ? definitions[name] : node
  const object = isObject(found) ? found : {}
  return {
    properties: isObject(object["properties"]) ? object["properties"] : {},
    required: Array.isArray(object["required"]) ? object["required"] as ReadonlyArray<string> : []
  }
}

/** Removes the definitions that nothing refers to. */
const withUsedDefinitions = (schema: JsonObject, definitions: unknown): JsonObject => {
  if (!isObject(definitions)) return schema
  const used = new Set<string>()
  const visit = (node: unknown): void => {
    const text = JSON.stringify(node)
    for (const name of Object.keys(definitions)) {
      if (used.has(name) || !text.includes(JSON.stringify(`#/$defs/${name}`))) continue
      used.add(name)
      visit(definitions[name])
    }
  }
  visit(schema)
  if (used.size === 0) return schema
  return { ...schema, $defs: Object.fromEntries(Object.entries(definitions).filter(([name]) => used.has(name))) }
}

interface Planned extends Part {
  /** The arguments of the part: one, with its own name as the key, if the part is one argument. */
  readonly members: ReadonlyArray<Member>
  /** The names of the headers that are not arguments. */
  readonly fixed: ReadonlyArray<string>
}

/** Whether a path would have another segment, or another route, with a value. */
const leavesSegment = (value: unknown): boolean => value === "" || value === "." || value === ".."

/** Returns the problem of a text for its place, if it has one. A socket would refuse such a header. */
const textProblem = (place: Place, value: unknown): string | undefined => {
  if (place === "params" && leavesSegment(value)) return `must not be "", "." or ".."`
  return place === "headers" && typeof value === "string" ? headerProblem(value) : undefined
}

const decodeParts = (
  parts: ReadonlyArray<Planned>,
  args: JsonObject,
  headers: Headers
): Effect.Effect<Parts, string, unknown> =>
  Effect.gen(function*() {
    const errors = Nesting.holdsAtMost(args, maxValuesForAllProblems) ? "all" as const : "first" as const
    const known = new Set(parts.flatMap(({ members }) => members.map(({ name }) => name)))
    const unknown = Object.keys(args).filter((name) => !known.has(name))
    const problems: Array<string> = unknown.slice(0, 10).map((name) => `Unexpected argument ${JSON.stringify(name)}`)
    const request: Record<string, unknown> = {}
    for (const part of parts) {
      const wire: Record<string, unknown> = Object.fromEntries(
        part.fixed.flatMap((key) => Object.hasOwn(headers, key) ? [[key, headers[key]]] : [])
      )
      const before = problems.length
      for (const { key, name, toWire } of part.members) {
        const value = Object.hasOwn(args, name) ? args[name] : undefined
        // Models send `null` for an argument that they leave out. Text has no null.
        if (value === undefined || (value === null && part.isText)) continue
        const text = toWire === undefined ? Result.succeed(value) : yield* Effect.result(toWire(value))
        if (Result.isFailure(text)) {
          problems.push(`${JSON.stringify(name)}: ${text.failure.message}`)
          continue
        }
        const problem = textProblem(part.place, text.success)
        if (problem === undefined) wire[key] = text.success
        else problems.push(`${JSON.stringify(name)} ${problem}`)
      }
      if (problems.length > before) continue
      const value = wireOf(part, wire)
      if (Result.isFailure(value)) {
        problems.push(value.failure)
        continue
      }
      const decoded = yield* Effect.result(Schema.decodeUnknownEffect(part.codec, { errors })(value.success))
      if (Result.isSuccess(decoded)) request[part.place] = decoded.success
      else problems.push(decoded.failure.message + renamed(part))
    }
    if (problems.length > 0) return yield* Effect.fail(problems.join("\n"))
    return request
  })

/** The value of a part that its codec decodes. */
const wireOf = ({ kind, members }: Planned, wire: JsonObject): Result.Result<unknown, string> => {
  if (kind === "members") return Result.succeed(wire)
  const value = wire[members[0]!.key]
  if (kind === "whole") return Result.succeed(value)
  const bytes = typeof value === "string" ? Result.getOrUndefined(Base64.decode(value)) : undefined
  return bytes === undefined
    ? Result.fail(`${JSON.stringify(members[0]!.name)} must be base64`)
    : Result.succeed(bytes)
}

/** A note for the model where the message of a schema has other names than the arguments. */
const renamed = ({ kind, members }: Planned): string => {
  const others = members.filter(({ key, name }) => key !== name)
  return kind !== "members" || others.length === 0
    ? ""
    : ` (${others.map(({ key, name }) => `${JSON.stringify(key)} is the argument ${JSON.stringify(name)}`).join(", ")})`
}

/**
 * Plans the arguments of an endpoint. `given` are the names of the headers whose values are not arguments. Throws
 * `Unsupported` if the endpoint has a payload that arguments cannot be.
 */
export const argumentsOf = (endpoint: Endpoint, given: ReadonlyArray<string>): Arguments => {
  const taken = new Set<string>()
  const take = (key: string, place: Place): string => {
    let name = key
    for (let count = 1; taken.has(name); count++) name = `${key}${suffixes[place]}${count === 1 ? "" : count}`
    taken.add(name)
    return name
  }
  const parts = partsOf(endpoint).map((part): Planned => {
    const { codec, isText, kind, place } = part
    if (kind !== "members") {
      const schema = kind === "bytes" ? Schema.String.annotate({ contentEncoding: "base64" }) as Codec : codec
      const only = { key: place, name: take(place, place), isRequired: true, schema, toWire: undefined }
      return { ...part, fixed: [], members: [only] }
    }
    const isFixed = ({ name }: AST.PropertySignature): boolean =>
      place === "headers" && (ownHeaders.has(String(name).toLowerCase()) || given.includes(String(name).toLowerCase()))
    const all = structOf(codec.ast)!.propertySignatures
    const signatures = all.filter((signature) => !isFixed(signature))
    const members = signatures.map((signature): Member => {
      const own = isText
        ? textMember(signature)
        : { key: String(signature.name), isRequired: false, schema: codec, toWire: undefined }
      return { ...own, name: take(own.key, place) }
    })
    return { ...part, members, fixed: all.filter(isFixed).map(({ name }) => String(name).toLowerCase()) }
  })

  // One schema of all parts, so that its definitions have distinct names. The members of a JSON payload keep the schema
  // of the payload, with its own checks, and are moved to the root below.
  const describe = (): ObjectSchema => {
    const fields = parts.flatMap((part): ReadonlyArray<readonly [string, Codec]> =>
      part.kind === "members" && !part.isText
        ? [[`${part.place} of the request`, part.codec]]
        : part.members.map(({ name, schema }) => [name, schema] as const)
    )
    const root = JsonSchema.ofArguments(Schema.Struct(Object.fromEntries(fields)))
    const { properties: all } = propertiesOf(root, root)
    const properties: Record<string, unknown> = {}
    const required: Array<string> = []
    for (const { isText, kind, members, place } of parts) {
      const nested = kind === "members" && !isText
        ? propertiesOf(all[`${place} of the request`], root)
        : undefined
      for (const { isRequired, key, name } of members) {
        properties[name] = nested === undefined ? withoutNull(all[name]) : nested.properties[key]
        if (nested === undefined ? isRequired : nested.required.includes(key)) required.push(name)
      }
    }
    if (Object.keys(properties).length === 0) return { type: "object", additionalProperties: false }
    return withUsedDefinitions({
      type: "object",
      properties,
      ...(required.length === 0 ? undefined : { required }),
      additionalProperties: false
    }, root["$defs"]) as ObjectSchema
  }
  return { jsonSchema: describe, read: (args, headers) => decodeParts(parts, args, headers) }
}

/** Removes the `null` that Effect writes for an optional value. */
const withoutNull = (node: unknown): unknown => {
  if (!isObject(node) || !Array.isArray(node["anyOf"])) return node
  const { anyOf, ...rest } = node
  const members = (anyOf as ReadonlyArray<unknown>).filter((member) => !isObject(member) || member["type"] !== "null")
  return members.length === 1 && isObject(members[0]) ? { ...members[0], ...rest } : { ...rest, anyOf: members }
}
