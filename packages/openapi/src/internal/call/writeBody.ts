/**
 * Writes the body of a request from the arguments of a call.
 */
import { isObject, type JsonObject } from "@skein/protocol/JsonRpc"
import { wellFormed } from "@skein/protocol/Text"
import * as Base64 from "effect/encoding/Base64"
import * as HttpBody from "effect/http/HttpBody"
import * as Result from "effect/Result"
import type { Argument, Arguments } from "../arguments/arguments.ts"
import type { Body } from "../arguments/body.ts"
import { forQuery, textOf, toJson } from "../arguments/serialize.ts"

const empty = Result.succeed(HttpBody.empty)

/** The member of the arguments of a call, if it is given. */
export const given = (args: JsonObject, name: string): unknown => Object.hasOwn(args, name) ? args[name] : undefined

/** The members of the body: the named ones, and further arguments if the body may have them. */
const membersOf = ({ extra, list }: Arguments, args: JsonObject): JsonObject => {
  const named = list.filter(({ name, place }) => place === "body" && given(args, name) !== undefined)
    .map(({ key, name }) => [key, args[name]] as const)
  const known = new Set(list.map(({ name }) => name))
  const others = extra === undefined ? [] : Object.entries(args).filter(([name]) => !known.has(name))
  return Object.fromEntries([...named, ...others])
}

/** Decodes base64 text. Fails with a message for the model. */
const bytesOf = (name: string, value: unknown): Result.Result<Uint8Array, string> => {
  const decoded = typeof value === "string" ? Result.getOrUndefined(Base64.decode(value)) : undefined
  return decoded === undefined
    ? Result.fail(`The argument ${JSON.stringify(name)} must be base64`)
    : Result.succeed(decoded)
}

const form = (fields: ReadonlyArray<Argument>, members: JsonObject): HttpBody.HttpBody => {
  const byKey = new Map(fields.map((field) => [field.key, field]))
  const text = Object.entries(members).flatMap(([key, value]) => {
    if (value === null) return []
    const field = byKey.get(key) ?? { key, style: "form" as const, explode: true, allowReserved: false }
    return forQuery(field, value).map(([name, each]) => `${name}=${each}`)
  }).join("&")
  return HttpBody.text(text, "application/x-www-form-urlencoded")
}

const concreteType = (type: unknown): string | undefined =>
  typeof type === "string" && !type.includes("*") ? type : undefined

/** The `contentMediaType` of a file, or of the items of a list of files. */
const mediaTypeOf = (field: Argument | undefined): string | undefined => {
  const schema = isObject(field?.schema) ? field.schema : {}
  const own = concreteType(schema["contentMediaType"])
  return own ?? (isObject(schema["items"]) ? concreteType(schema["items"]["contentMediaType"]) : undefined)
}

const multipart = (
  fields: ReadonlyArray<Argument>,
  { byteKeys, contentTypes }: Body,
  members: JsonObject
): Result.Result<HttpBody.HttpBody, string> => {
  const data = new FormData()
  const byKey = new Map(fields.map((field) => [field.key, field]))
  for (const [key, value] of Object.entries(members)) {
    const field = byKey.get(key)
    const { isBytes = byteKeys.has(key), name = key } = field ?? {}
    const type = concreteType(contentTypes.get(key))
    for (const item of Array.isArray(value) ? value : [value]) {
      if (item === null) continue
      if (isBytes) {
        const bytes = bytesOf(name, item)
        if (Result.isFailure(bytes)) return Result.fail(bytes.failure)
        data.append(
          key,
          new Blob([new Uint8Array(bytes.success)], { type: type ?? mediaTypeOf(field) ?? "application/octet-stream" }),
          key
        )
      } else if (type !== undefined || typeof item === "object") {
        // "If the property is a complex value, the default Content-Type is application/json" (OpenAPI 3.1, "Encoding").
        data.append(key, new Blob([wellFormed(textOf(item))], { type: type ?? "application/json" }))
      } else {
        data.append(key, wellFormed(textOf(item)))
      }
    }
  }
  return Result.succeed(HttpBody.formData(data))
}

/** Writes the body of a call. Fails with a message for the model. */
export const writeBody = (plan: Arguments, args: JsonObject): Result.Result<HttpBody.HttpBody, string> => {
  const { body, list } = plan
  if (body === undefined) return empty
  const fields = list.filter(({ place }) => place === "body")
  const whole = body.fields === undefined ? fields[0] : undefined
  const value = whole === undefined ? membersOf(plan, args) : given(args, whole.name)
  const isAbsent = value === undefined ||
    (whole === undefined && Object.keys(value as JsonObject).length === 0 && !body.isRequired)
  if (isAbsent) return empty
  switch (body.kind) {
    case "json":
      return Result.succeed(HttpBody.text(toJson(value), body.mediaType))
    case "text":
      return Result.succeed(HttpBody.text(wellFormed(textOf(value)), body.mediaType))
    case "bytes":
      return Result.map(bytesOf(whole?.name ?? "body", value), (bytes) => HttpBody.uint8Array(bytes, body.mediaType))
    case "form":
      return Result.succeed(form(fields, isObject(value) ? value : {}))
    case "multipart":
      return multipart(fields, body, isObject(value) ? value : {})
  }
}
